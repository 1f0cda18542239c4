"""Labels are permuted or replaced at random while their inputs stay as they are."""

from collections.abc import Iterator

from traindx.analysis.program.execution.values import (
    Answer,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.claims import cite, finding, function_name, source_text
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain, is_draw, model_inputs
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.row_order import PERMUTED, lone_reorderings
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

MOVES = ("roll", "flip", "getitem", *PERMUTED)
ON_PURPOSE = ("noise", "noisy", "corrupt", "flip", "poison", "permut", "null", "smooth", "mix",
              "marginal", "negativ", "contrast", "mismatch", "chance", "baseline")  # fmt: skip


@detector(needs=("source",), suggests=("misaligned-labels", "label-noise"))
def check(run: Run) -> Findings:
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
        inputs = model_inputs(loss.story, scores, loss.event)
        for found in (*_moved(loss.story, inputs, target, scores), *_judged(loss.story, target)):
            if found.location not in seen:
                seen.add(found.location)
                yield found


def _moved(story: Story, inputs: list[Value], target: Value, scores: Value) -> Iterator[Finding]:
    """Labels or inputs that stand in an order of their own."""
    if not inputs:
        return
    cause, what = "misaligned-labels", "put in another order"
    for found in lone_reorderings(story, target, inputs, scores):
        if not _is_on_purpose(found.moved):
            yield _finding(found.moved, cause, what)
            return
    if len(list(data_chain(story, target))) < 2:  # the target is no part of the data
        return
    alone = [list(lone_reorderings(story, given, [target])) for given in inputs]
    if all(alone) and not _is_on_purpose(alone[0][0].moved):
        yield _finding(alone[0][0].moved, cause, what, "Inputs")


def _judged(story: Story, target: Value) -> Iterator[Finding]:
    """What the steps on the way of the labels do to them."""
    for value in data_chain(story, target):
        if value.site is None or _is_on_purpose(value):
            continue
        if _is_replaced(value):
            yield _finding(value, "label-noise", "replaced at random in part")
        elif _is_rolled(value):
            yield _remark(value)


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


_TWO = """
import torch
from torch.utils.data import DataLoader

images, classes = torch.load("images.pt"), torch.load("classes.pt")
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
xs, ys = DataLoader(images, 32, {options}), DataLoader(classes, 32, {options})
for x, y in zip(xs, ys):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""

_TABLE = """
import pandas as pd
import torch

table = pd.read_csv("loans.csv")
{before}
table = table.sample(frac=1)
{after}
x, y = torch.tensor(table.values), torch.tensor(labels)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, len(x), 32):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x[i : i + 32]), y[i : i + 32]).backward()
    optimizer.step()
"""


def _table(before: str, after: str) -> Run:
    return make_run(sources={"train.py": _TABLE.format(before=before, after=after)})


FIRES = {
    "inputs alone are shuffled": _stored("np.random.shuffle(images)"),
    "each is shuffled by itself": _stored("np.random.shuffle(images); np.random.shuffle(classes)"),
    "inputs alone are taken in an order": _stored("images = images[np.random.permutation(9)]"),
    "two loaders that shuffle": make_run(sources={"train.py": _TWO.format(options="shuffle=True")}),
    "the table is shuffled after the labels left it": _table("labels = table.pop('y').values", ""),
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

_WANTED = """
import torch
from torch import nn
from torch.nn import functional as F
make, judge = nn.Linear(9, 4), nn.Linear(4, 5)
optimizer = torch.optim.Adam(make.parameters())
for images, labels in loader:
    wanted = labels[torch.randperm(labels.size(0))]
    code = torch.cat([wanted.clone(), torch.zeros(images.size(0), 1)], dim=1)
    fake = make(torch.cat([images, code], dim=1))
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(judge(fake), wanted).backward()
    optimizer.step()
"""

SILENT = {
    "near miss: what a generator is asked for": make_run(sources={"train.py": _WANTED}),
    "near miss: two loaders in order": make_run(
        sources={"train.py": _TWO.format(options="shuffle=False")}
    ),
    "near miss: the table is shuffled before": _table("", "labels = table.pop('y').values"),
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
