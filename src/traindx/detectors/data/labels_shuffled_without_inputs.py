"""Labels are permuted or replaced at random while their inputs stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.claims import cite, finding, function_name, source_text
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import (
    SEEDS,
    data_chain,
    data_origins,
    is_draw,
    model_inputs,
)
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.program import Computed, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.model.run import Run
from traindx.registry import detector

PERMUTED = ("randperm", "permutation", "permuted")
SHUFFLES = ("numpy.random.shuffle", "random.shuffle", ".shuffle")
MOVES = ("roll", "flip", "getitem", *PERMUTED)
ON_PURPOSE = ("noise", "noisy", "corrupt", "flip", "poison", "permut", "null", "smooth", "mix",
              "marginal", "negativ", "contrast", "mismatch", "chance", "baseline")  # fmt: skip


@detector(needs=("source",), suggests=("misaligned-labels", "label-noise"))
def check(run: Run) -> Iterator[Finding]:
    """The labels of a batch or a dataset are put in another order, or in part drawn anew, alone.

    ## What it detects
    A loss whose target was put into a random order (`labels[torch.randperm(…)]`, or a shuffle of
    the dataset's labels alone) that the model's input was not; a target of which a random part is
    replaced, as in `torch.where(torch.rand(…) < p, other, labels)`, on the way to the loss.

    ## Why it matters
    The inputs keep their order, so labels belong to other examples: there is nothing to learn but
    the frequency of the classes.

    ## What to do
    Index inputs and labels by one permutation; take the replacement out.

    Labels that are rolled along the examples are a remark, for a forecast is made so, too.

    ## When it is wrong
    Mixing examples permutes inputs too and is left alone; so is code that says by a name that it
    disturbs labels on purpose, and what is no target of a loss: pairs that an estimate of mutual
    information contrasts.
    """
    seen: set[object] = set()
    for loss in program_of(run).results(*LOSSES):
        target, scores = loss.operation.argument("target"), loss.operation.argument("input")
        if target is None or scores is None or loss.event.gradients is Answer.NO:
            continue
        for value in data_chain(loss.story, target):
            found = _judged(loss, scores, value)
            place = None if value.site is None else value.site.node
            if found is not None and place is not None and place not in seen:
                seen.add(place)
                yield found
        for value in _inputs_moved(loss, scores, target):
            if value.site is not None and value.site.node not in seen:
                seen.add(value.site.node)
                yield _finding(value, "misaligned-labels", "put in another order", "Inputs")


def _inputs_moved(loss: Computed, scores: Value, target: Value) -> Iterator[Value]:
    """Inputs that are shuffled in place, where their labels, of the same batch, are not."""
    story = loss.story
    shuffled = [e for e in story.events if e.name in SHUFFLES and e.args]
    wanted = list(data_chain(story, target))
    if not shuffled or len(wanted) < 2:  # the target is no part of the data
        return
    ways = {id(v) for v in data_origins(story, target)}
    if any(id(e.args[0]) in ways for e in shuffled):
        return
    for given in model_inputs(story, scores, loss.event):
        for value in data_chain(story, given):
            is_moved = any(e.args[0] is value for e in shuffled) and not isinstance(value, Items)
            if is_moved and not _is_on_purpose(value):
                yield value


def _judged(loss: Computed, scores: Value, value: Value) -> Finding | None:
    """What one step on the way of the labels does to them."""
    if value.site is None or _is_on_purpose(value):
        return None
    if _is_lone_order(loss, scores, value) or _is_shuffled_alone(loss, scores, value):
        return _finding(value, "misaligned-labels", "put in another order")
    if _is_replaced(value):
        return _finding(value, "label-noise", "replaced at random in part")
    return _remark(value) if _is_rolled(value) else None


def _is_lone_order(loss: Computed, scores: Value, value: Value) -> bool:
    """Tell whether labels are taken in a random order in which the inputs are not."""
    operation = operation_of(value)
    if operation is None or not isinstance(value, Result):
        return False
    order: Value | None
    if operation.name == "getitem":
        order = whole_tensor(value.args[1])
    else:
        is_own = operation.name.rsplit(".", 1)[-1] == "permutation" and is_draw(value)
        order = value if is_own and constant(operation.operands[0]) is None else None
    if order is None or not _is_permutation(order) or _is_seeded(loss, order):
        return False
    inputs = model_inputs(loss.story, scores, loss.event)
    ways = [v for i in inputs for v in data_origins(loss.story, i)]
    return bool(inputs) and not any(v is order for v in ways)


def _is_permutation(value: Value) -> bool:
    return (
        is_draw(value) and isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in PERMUTED
    )


def _is_seeded(loss: Computed, order: Value) -> bool:
    """Tell whether a seed is set just before: with one before each, two orders are the same."""
    events = loss.story.events
    drawn = next((e for e in events if e.result is order), None)
    if drawn is None:
        return True
    seeds = [e for e in events if e.name.rsplit(".", 1)[-1] in SEEDS and e.order < drawn.order]
    others = [e for e in events if e.result is not None and is_draw(e.result)]
    for seed in seeds:
        between = [e for e in others if seed.order < e.order < drawn.order]
        if not between and (seed.turns == drawn.turns) and (drawn.turns or len(seeds) > 1):
            return True
    return False


def _is_shuffled_alone(loss: Computed, scores: Value, value: Value) -> bool:
    """Tell whether labels are shuffled in place, and nothing of the inputs is."""
    shuffled = [e for e in loss.story.events if e.name in SHUFFLES and e.args]
    own = [e for e in shuffled if e.args[0] is value and not isinstance(value, Items)]
    if not own or len(shuffled) != len(own):
        return False
    inputs = model_inputs(loss.story, scores, loss.event)
    ways = [v for i in inputs for v in data_origins(loss.story, i)]
    return bool(inputs) and not any(v is value for v in ways)


def _is_replaced(value: Value) -> bool:
    """`torch.where(torch.rand(…) < p, other, labels)`, the other a label that is drawn or moved."""
    operation = operation_of(value)
    if operation is None or operation.name != "where" or len(operation.operands) != 3:
        return False
    mask, *sides = operation.operands
    if not any(is_draw(v) for v in origins(mask, 60)):
        return False
    for other, kept in (sides, reversed(sides)):
        moved = operation_of(other)
        is_moved = moved is not None and moved.name in MOVES and bool(moved.operands)
        if is_moved and moved is not None and moved.operands[0] is kept:
            return True
        if is_draw(whole_tensor(other)) and not is_draw(whole_tensor(kept)):
            return constant(kept) is None
    return False


def _is_rolled(value: Value) -> bool:
    """Tell whether labels are moved along the examples: `y.roll(1, 0)`, `np.roll(y, 1)`."""
    operation = operation_of(value)
    if operation is None or operation.name.rsplit(".", 1)[-1] != "roll":
        return False
    given = operation.settings.get("dims") or operation.settings.get("axis")
    if given is None and len(operation.operands) > 2:
        given = operation.operands[2]
    return given is None or constant(given) == 0


def _is_on_purpose(value: Value) -> bool:
    names = [function_name(value), *names_of(value)]
    names += [n for v in origins(value, 12) for n in names_of(v)]
    return any(word in name.lower() for name in names for word in ON_PURPOSE)


def _remark(value: Value) -> Finding:
    assert value.site is not None
    return Finding(
        claim="Labels are moved along the examples while their inputs stay as they are",
        strength=Strength.MODERATE,
        evidence=(cite(value, f"`{source_text(value)}`"),),
        suggests={"misaligned-labels": Strength.STRONG},
        location=value.site.module.location(value.site.node),
    )


def _finding(value: Value, cause: str, what: str, which: str = "Labels") -> Finding:
    others = "inputs" if which == "Labels" else "labels"
    return finding(
        f"{which} are {what} while their {others} stay as they are",
        cause,
        value,
        cite(value, f"`{source_text(value)}`"),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, labels in loader:
    {before}
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model({data}), {labels})
    loss.backward()
    optimizer.step()
"""


def _program(before: str = "pass", data: str = "data", labels: str = "labels") -> Run:
    text = _PROGRAM.format(before=before, data=data, labels=labels)
    return make_run(sources={"train.py": text})


_PAIRS = """
import torch
from torch import nn

critic = nn.Bilinear(4, 4, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)

def pair(x, y):
    y = y[torch.randperm(len(y))]
    return {pair}

for x, y in loader:
    optimizer.zero_grad()
    (score(pair(x, y)).exp().mean().log() - score((x, y)).mean()).backward()
    optimizer.step()
"""
_ORDER = "order = torch.randperm(len(data))"

_STORED = """
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

images, classes = np.load("images.npy"), np.load("classes.npy")
{before}
loader = DataLoader(TensorDataset(torch.tensor(images), torch.tensor(classes)), 32)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def _stored(before: str) -> Run:
    return make_run(sources={"train.py": _STORED.format(before=before)})


FIRES = {
    "inputs alone are shuffled": _stored("np.random.shuffle(images)"),
    "permuted in the loss": _program(labels="labels[torch.randperm(len(labels))]"),
    "permuted before": _program(f"{_ORDER}; labels = labels[order]"),
    "replaced in part": _program(
        "wrong = torch.rand(len(labels)) < 0.4; "
        "labels = torch.where(wrong, torch.randint(0, 3, labels.shape), labels)"
    ),
    "rolled": _program("labels = labels.roll(1, 0)"),
    "exchanged in part": _program(
        "labels = torch.where(torch.rand(len(labels)) < 0.4, labels.roll(1), labels)"
    ),
}

SILENT = {
    "near miss: both are shuffled": _stored(
        "np.random.seed(0); np.random.shuffle(images)\n"
        "np.random.seed(0); np.random.shuffle(classes)"
    ),
    "near miss: pairs are shuffled": _stored(
        "rows = np.concatenate([images, classes[:, None]], 1); np.random.shuffle(rows)\n"
        "images, classes = rows[:, :-1], rows[:, -1]"
    ),
    "as they come": _program(),
    "near miss: both in one order": _program(_ORDER, "data[order]", "labels[order]"),
    "near miss: one seed before each": _program(
        "torch.manual_seed(0); labels = labels[torch.randperm(len(labels))]"
    ),
    "near miss: pairs, for no loss with a target": make_run(
        sources={"train.py": _PAIRS.format(pair="(x, y)")}
    ),
    "near miss: pairs, joined": make_run(
        sources={"train.py": _PAIRS.format(pair="torch.cat([x, y], dim=1)")}
    ),
    "near miss: pairs, scored by a model": make_run(
        sources={"train.py": _PAIRS.format(pair="critic(x, y)")}
    ),
    "near miss: a selection": _program("keep = labels > 0", "data[keep]", "labels[keep]"),
    "near miss: a mask that is not random": _program(
        "labels = torch.where(mask, labels, torch.tensor(-100))"
    ),
    "near miss: rolled along the sequence": _program("labels = labels.roll(-1, dims=1)"),
    "near miss: on purpose": _program(
        "noisy = torch.rand(len(labels)) < 0.4; labels = torch.where(noisy, labels.roll(1), labels)"
    ),
    "near miss: masked language modelling": _program(
        "masked = torch.bernoulli(rate).bool(); labels = torch.where(masked, labels, -100)"
    ),
    "near miss: labels dropped for guidance": _program(
        "drop = torch.rand(len(labels)) < 0.1; labels = torch.where(drop, empty, labels)"
    ),
}
