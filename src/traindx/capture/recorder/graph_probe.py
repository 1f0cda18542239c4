"""What the graph of a loss tells: what the loss function was given, and what the units do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from . import graph
from .graph import Node
from .summaries import spaced, summarise

NEAR = 400  # nodes below the loss among which loss functions are looked for
MAX_LOSSES = 4
MAX_ACTIVATIONS = 48
ROWS = 256
LABELS = 16384
SHOWN_CLASSES = 20
VALUES = 4096

_LOSSES = {
    "nll_loss": "nll_loss", "nll_loss2d": "nll_loss", "mse_loss": "mse_loss",
    "smooth_l1_loss": "smooth_l1_loss", "huber_loss": "huber_loss",
    "binary_cross_entropy": "bce", "binary_cross_entropy_with_logits": "bce_with_logits",
    "kl_div": "kl_div",
}  # fmt: skip
_RESULTS = frozenset({"relu", "tanh", "sigmoid", "softmax", "threshold"})
_INPUTS = {"addmm": "mat1", "convolution": "input", "linear": "input", "mm": "self"}
_FLAT_END = 0.03  # of the range of tanh or sigmoid


def losses(nodes: list[Node]) -> list[dict[str, Any]]:
    """Return what entered each loss function near the top of the graph."""
    found = []
    for node in nodes[:NEAR]:
        said = _loss(node) if node.name in _LOSSES else _difference(node)
        if said is not None:
            found.append(said)
        if len(found) == MAX_LOSSES:
            break
    return found


def target(nodes: list[Node]) -> torch.Tensor | None:
    """Return the classes that the first loss function was given."""
    for node in nodes[:NEAR]:
        if node.name in ("nll_loss", "nll_loss2d"):
            return node.saved("target")
    return None


def _loss(node: Node) -> dict[str, Any] | None:
    prediction, target = node.saved("self"), node.saved("target")
    if prediction is None or target is None:
        return None
    kind = _LOSSES[node.name]
    below = graph.producer(node)
    if kind == "nll_loss" and below is not None and below.name == "log_softmax":
        kind, below = "cross_entropy", graph.producer(below)
    said: dict[str, Any] = {
        "loss": kind,
        "producer": below.name if below is not None else "",
        "prediction": summarise(prediction, "prediction"),
        "target": summarise(target, "target"),
        "spread": _spread(prediction),
    }
    if kind in ("cross_entropy", "nll_loss"):
        said.update(_classes(node, prediction, target))
    elif kind.startswith("bce"):
        middle = 0.5 if kind == "bce" else 0.0
        said["labels"] = _counts(spaced(target, LABELS) > 0.5)
        said["predictions"] = _counts(spaced(prediction, LABELS) > middle)
        said["classes"] = 2
    else:
        said["broadcast"] = _expanded(node, target)
    if kind == "cross_entropy" and below is not None and below.name == "softmax":
        said["rows_sum_to_one"] = True
    return said


def _classes(node: Node, prediction: torch.Tensor, target: torch.Tensor) -> dict[str, Any]:
    columns = 1 if prediction.dim() > 1 else 0
    ignored = node.setting("ignore_index")
    labels = spaced(target, LABELS)
    counted = labels[labels != ignored] if isinstance(ignored, int) else labels
    chosen = prediction.detach().argmax(columns)
    return {
        "classes": int(prediction.shape[columns]),
        "labels": _counts(counted),
        "predictions": _counts(spaced(chosen, LABELS)),
        "ignored": 1.0 - counted.numel() / max(1, labels.numel()),
    }


def _counts(labels: torch.Tensor) -> dict[str, int]:
    """Return how often the most frequent classes occur."""
    counted = Counter(labels.to("cpu").long().tolist())
    return {str(label): count for label, count in counted.most_common(SHOWN_CLASSES)}


def _expanded(node: Node, target: torch.Tensor) -> list[list[int]]:
    """Return the shapes that a loss of equals was given if they differed, and what came of it."""
    result = [int(n) for n in target.shape]
    own = node.inputs[0] if node.inputs else None
    given = list(result)
    if own is not None and own.name == "expand":
        given = [int(n) for n in own.setting("self_sym_sizes") or result]
    other = [n for n, stride in zip(result, target.stride()) if stride != 0 or n == 1]
    if given == result and other == result:
        return []
    return [given, other, result]


def _difference(node: Node) -> dict[str, Any] | None:
    """Look at a difference that was written by hand: (prediction - target) ** 2."""
    if node.name not in ("sub", "rsub") or len(node.inputs) != 1:
        return None
    given, result = _given_shape(node), node.shape
    is_square = len(result) == 2 and result[0] == result[1] > 1
    if not is_square or given not in ((result[0], 1), (result[0],)):
        return None
    other = [result[0]] if len(given) == 2 else [result[0], 1]
    below = graph.producer(node)
    return {
        "loss": "difference",
        "producer": below.name if below is not None else "",
        "prediction": {"name": "prediction", "shape": list(given)},
        "broadcast": [list(given), other, list(result)],
    }


def _given_shape(node: Node) -> tuple[int, ...]:
    """Return the shape of what a difference was given, before it was expanded to match."""
    own = node.inputs[0]
    if own.name == "expand":
        return tuple(int(n) for n in own.setting("self_sym_sizes") or ())
    return own.shape_of(node.slots[0])


def _spread(prediction: torch.Tensor) -> float | None:
    """Return how far outputs differ between examples, over their size."""
    if prediction.dim() == 0 or prediction.shape[0] < 2:
        return None
    rows = prediction.detach()[:ROWS]
    rows = rows.reshape(rows.shape[0], -1)[:, :ROWS].double()
    size = float(rows.abs().mean())
    return float(rows.std(0, unbiased=False).mean()) / size if size > 0 else 0.0


def activations(nodes: list[Node], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return what the units and the inputs of layers look like, from the loss downward."""
    telling = [n for n in nodes if n.name in _RESULTS or n.name in _INPUTS]
    every = -(-len(telling) // MAX_ACTIVATIONS) or 1
    found = []
    for node in telling[::every]:
        said = _activation(node, names)
        if said is not None:
            found.append(said)
    return found


def _activation(node: Node, names: Mapping[int, str]) -> dict[str, Any] | None:
    is_result = node.name in _RESULTS
    kept = node.saved("result" if is_result else _INPUTS[node.name])
    if kept is None or not kept.is_floating_point() or kept.numel() < 2:
        return None
    values = spaced(kept, VALUES).float()
    is_finite = torch.isfinite(values)
    finite = values[is_finite]
    said: dict[str, Any] = {
        "name": _layer(node, names),
        "op": node.name if is_result else f"input of {node.name}",
        "shape": [int(n) for n in kept.shape],
        "nonfinite": int((~is_finite).sum()),
    }
    if finite.numel():
        said["low"], said["high"] = float(finite.min()), float(finite.max())
        said["mean"], said["std"] = float(finite.mean()), float(finite.std(unbiased=False))
    if node.name in ("relu", "threshold"):
        said["dead"] = _dead(node, kept)
    elif node.name in ("tanh", "sigmoid"):
        low = -1.0 if node.name == "tanh" else 0.0
        edge = _FLAT_END * (1.0 - low)
        flat = (finite < low + edge) | (finite > 1.0 - edge)
        said["saturated"] = float(flat.float().mean()) if finite.numel() else None
    elif node.name == "softmax" and said["nonfinite"]:
        said["masked_rows"] = _masked_rows(node, kept)
    return said


def _dead(node: Node, kept: torch.Tensor) -> float | None:
    """Return the share of units that are zero for every example."""
    if kept.dim() < 2:
        return None
    below = graph.producer(node)
    is_spatial = kept.dim() >= 3 and below is not None and "conv" in below.name
    is_spatial = is_spatial or (kept.dim() >= 4)
    units = 1 if is_spatial else kept.dim() - 1
    rows = kept.detach()[:ROWS]
    others = [d for d in range(rows.dim()) if d != units]
    return float((rows.amax(dim=others) <= 0).float().mean())


def _masked_rows(node: Node, kept: torch.Tensor) -> int:
    dim = node.setting("dim")
    dim = dim if isinstance(dim, int) and -kept.dim() <= dim < kept.dim() else -1
    return int(torch.isnan(kept).all(dim).sum())


def _layer(node: Node, names: Mapping[int, str]) -> str:
    """Return the name of the layer whose output, or input, it is."""
    for variable in graph.parameters_below(node):
        name = names.get(id(variable))
        if name:
            return name.rsplit(".", 1)[0] if "." in name else name
    return ""
