"""What costs next to nothing reaches on the same examples: constant, linear, nearest neighbour."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx.model.run import Floats

MOST_BYTES = 256 << 20
FEWEST = 40  # examples of each side
MOST = 1500  # examples that a neighbour is looked for among
RIDGE = 1e-2  # of the mean variance of a feature
ROUNDS = 200  # of the logistic regression
NEIGHBOURS = 5
HELD = 0.3  # of the training examples, where no held-out ones were seen
MOST_CLASSES = 200


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Examples as the model was given them: inputs and targets, to fit and to judge by."""

    x: Floats
    y: Floats
    held_x: Floats
    held_y: Floats
    is_held_out: bool = True  # the program's own held-out set; else a part of the training examples


def read_examples(folder: Path) -> ExampleSet | None:
    """Return the examples that a rerun kept; None where there are too few, or none."""
    for path in sorted(folder.glob(".examples-*.bin")):
        found = _set_of(_tables(path))
        if found is not None:
            return found
    return None


def _tables(path: Path) -> dict[str, Floats]:
    """Return the tables of a file: a line of names and shapes, and the numbers after it."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        header, _, data = path.read_bytes().partition(b"\n")
        shapes = json.loads(header)
        tables, at = {}, 0
        for name, (rows, columns) in shapes.items():
            size = int(rows) * int(columns)
            table = np.frombuffer(data, dtype=np.float64, count=size, offset=at)
            tables[str(name)] = table.reshape(int(rows), int(columns)).copy()
            at += size * table.itemsize
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return tables


def _set_of(arrays: dict[str, Floats]) -> ExampleSet | None:
    x, y = arrays.get("x"), arrays.get("y")
    if x is None or y is None or len(x) != len(y):
        return None
    x, y = _once(x, y)
    held_x, held_y = arrays.get("held_x"), arrays.get("held_y")
    if held_x is not None and held_y is not None and held_x.shape[1] == x.shape[1]:
        held_x, held_y = _apart(held_x, held_y, x)
        if len(held_x) >= FEWEST and len(x) >= FEWEST and held_y.shape[1] == y.shape[1]:
            return ExampleSet(x, y, held_x, held_y)
    cut = round((1.0 - HELD) * len(x))
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    if len(x) - cut < FEWEST or cut < FEWEST:
        return None
    return ExampleSet(x[:cut], y[:cut], x[cut:], y[cut:], is_held_out=False)


def _once(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return each example once: an epoch gives them again."""
    first = {row.tobytes(): i for i, row in reversed(list(enumerate(x)))}
    kept = sorted(first.values())
    return x[kept], y[kept]


def _apart(held_x: Floats, held_y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the held-out examples that are not trained on, each once."""
    held_x, held_y = _once(held_x, held_y)
    seen = {row.tobytes() for row in x}
    kept = [i for i, row in enumerate(held_x) if row.tobytes() not in seen]
    return held_x[kept], held_y[kept]


@dataclass(frozen=True, slots=True)
class SimpleModel:
    """What a simple model reaches: the mean loss, and the share of hits for classes."""

    loss: float
    score: float = math.nan


def floors_of(examples: ExampleSet, kind: str) -> dict[str, SimpleModel]:
    """Return what each simple model reaches; `kind` says what the targets are."""
    if not all(np.all(np.isfinite(a)) for a in (examples.x, examples.held_x)):
        return {}
    if kind == "values":
        return _regressions(examples)
    if examples.y.shape[1] != 1:
        return {}
    return _classifications(examples)


# regression


def _regressions(examples: ExampleSet) -> dict[str, SimpleModel]:
    y, held = examples.y, examples.held_y
    x, held_x = _standardised(examples)
    constant = np.broadcast_to(y.mean(0), held.shape)
    scale = np.maximum(y.std(0), 1e-12)
    weights = _ridge(x, (y - y.mean(0)) / scale)
    linear = _with_one(held_x) @ weights * scale + y.mean(0)
    near = y[_nearest(x, held_x)].mean(1)
    models = {"constant": constant, "linear": linear, "nearest_neighbour": near}
    return {n: SimpleModel(float(np.mean((p - held) ** 2))) for n, p in models.items()}


def _ridge(x: Floats, y: Floats) -> Floats:
    design = _with_one(x)
    gram = design.T @ design
    penalty = RIDGE * len(x) * np.eye(len(gram))
    penalty[-1, -1] = 0.0
    return np.asarray(np.linalg.lstsq(gram + penalty, design.T @ y, rcond=None)[0])


# classification


def _classifications(examples: ExampleSet) -> dict[str, SimpleModel]:
    labels, held = (np.rint(a[:, 0]).astype(int) for a in (examples.y, examples.held_y))
    classes = int(max(labels.max(), held.max())) + 1
    if min(labels.min(), held.min()) < 0 or not 1 < classes <= MOST_CLASSES:
        return {}
    x, held_x = _standardised(examples)
    prior = (np.bincount(labels, minlength=classes) + 1.0) / (len(labels) + classes)
    constant = np.broadcast_to(prior, (len(held), classes))
    linear = _logistic(x, labels, held_x, classes)
    votes = np.eye(classes)[labels[_nearest(x, held_x)]].mean(1)
    near = (votes * NEIGHBOURS + prior) / (NEIGHBOURS + 1.0)
    models = {"constant": constant, "linear": linear, "nearest_neighbour": near}
    return {name: _judged(shares, held) for name, shares in models.items()}


def _judged(shares: Floats, held: Floats) -> SimpleModel:
    own = shares[np.arange(len(held)), held.astype(int)]
    loss = float(-np.mean(np.log(np.maximum(own, 1e-12))))
    return SimpleModel(loss, float(np.mean(shares.argmax(1) == held)))


def _logistic(x: Floats, labels: Floats, held_x: Floats, classes: int) -> Floats:
    """Fit a multinomial logistic regression by gradient descent with momentum."""
    design, wanted = _with_one(x), np.eye(classes)[labels.astype(int)]
    weights = np.zeros((design.shape[1], classes))
    speed = np.zeros_like(weights)
    largest = float(np.linalg.norm(design, 2)) ** 2 / len(design)
    rate = 1.0 / (0.5 * largest + RIDGE)
    for _ in range(ROUNDS):
        slope = design.T @ (_softmax(design @ weights) - wanted) / len(design) + RIDGE * weights
        speed = 0.9 * speed - rate * slope
        weights = weights + speed
    return _softmax(_with_one(held_x) @ weights)


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


# both


def _standardised(examples: ExampleSet) -> tuple[Floats, Floats]:
    mean, scale = examples.x.mean(0), examples.x.std(0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    return (examples.x - mean) / scale, (examples.held_x - mean) / scale


def _with_one(x: Floats) -> Floats:
    return np.hstack([x, np.ones((len(x), 1))])


def _nearest(x: Floats, held: Floats) -> NDArray[np.intp]:
    """Return the nearest examples of each held-out one."""
    x = x[:MOST]
    squares = (held**2).sum(1)[:, None] - 2.0 * held @ x.T + (x**2).sum(1)[None]
    count = min(NEIGHBOURS, len(x))
    return np.argpartition(squares, count - 1, axis=1)[:, :count]
