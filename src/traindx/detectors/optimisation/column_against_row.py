"""A column of predictions meets a flat row of targets."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.values import Result, Value, origins
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import (
    argument_site,
    cite,
    finding,
    replace,
    source_text,
)
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.program import Computed, Story, program_of
from traindx.analysis.program.training.shapes import Shape, is_reshaped, last_size, shape_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@detector(needs=("source",), suggests=("target-shape-broadcast",))
def check(run: Run) -> Iterator[Finding]:
    """Predictions of shape (N, 1) are compared with targets of shape (N).

    ## What it detects
    A squared, absolute or Huber loss of which one side is a column, such as the output of a linear
    layer with one unit, and the other has one dimension for certain: made from a column of a table,
    by a factory with a single size, by an index or a reduction. The same for a loss written by
    hand, `((output - target) ** 2).mean()`, where both shapes are in sight.

    ## Why it matters
    Broadcasting compares every prediction with every target, N × N pairs. The loss is a number,
    gradients flow, and the model learns the mean of the targets.

    ## What to do
    Give both the same shape: `output.squeeze(1)`, or `target.unsqueeze(1)`.

    ## When it is wrong
    Where either shape is out of sight nothing is said, nor where a loss by hand sets a column
    against a row of another length, such as thresholds or quantiles.
    """
    program = program_of(run)
    seen: set[object] = set()
    for loss in program.results(*LOSSES):
        given, target = loss.operation.argument("input"), loss.operation.argument("target")
        if given is None or target is None or loss.event.node in seen:
            continue
        if _meet(loss.story, given, target) or _meet(loss.story, target, given):
            seen.add(loss.event.node)
            yield _finding(loss, given, target)
    for story in program.stories:
        for difference in _differences(story):
            if difference.site is not None and difference.site.node not in seen:
                seen.add(difference.site.node)
                yield _by_hand(difference)


def _meet(story: Story, column: Value, row: Value) -> bool:
    """Tell whether one side is a column for certain, and the other one flat."""
    is_row = _is_row(shape_of(row)) and last_size(column) == 1
    is_row = is_row or story.shapes.pairs_all(column, row)
    return is_row and not any(is_reshaped(story, v) for v in (column, row))


def _is_row(shape: Shape | None) -> bool:
    return shape is not None and len(shape) == 1 and shape != (1,)


def _is_column(shape: Shape | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[1] == 1 and shape[0] != 1


def _finding(loss: Computed, given: Value, target: Value) -> Finding:
    is_column = last_size(given) == 1 or loss.story.shapes.pairs_all(given, target)
    site = argument_site(loss.event, given if is_column else target)
    text = "" if site is None else source_text(site)
    return finding(
        f"{loss.label} broadcasts a shape of (N, 1) against a shape of (N)",
        "target-shape-broadcast",
        loss.event,
        cite(loss.event, "the two meet here and broadcast to (N, N)"),
        *(cite(v, says) for v, says in _made(given, target, is_column) if v.site is not None),
        is_symptom=True,
        patch=replace(site, f"{text}.squeeze(1)") if site is not None else None,
    )


def _made(given: Value, target: Value, is_column: bool) -> tuple[tuple[Value, str], ...]:
    column, row = (given, target) if is_column else (target, given)
    return (column, "a column: (N, 1)"), (row, "one dimension: (N)")


def _differences(story: Story) -> Iterator[Result]:
    """The differences in losses that no loss function of torch's computes."""
    for deed in story.does(Do.BACKWARD):
        for value in origins(deed.subject) if deed.subject is not None else ():
            if not isinstance(value, Result) or value.maker != "operator.sub":
                continue
            first, second = (shape_of(v) for v in value.args)
            if _is_paired(story, value):
                yield value
                continue
            is_wrong = (_is_column(first) and _is_row(second)) or (
                _is_row(first) and _is_column(second)
            )
            if not is_wrong or not first or not second or not _are_pairs(value, first, second):
                continue
            if not any(is_reshaped(story, v) for v in value.args):
                yield value


def _is_paired(story: Story, difference: Result) -> bool:
    """Tell whether predictions meet as many targets, by the data of the program."""
    if len([v for v in difference.args if runs_behind(v)]) > 1 or len(difference.args) != 2:
        return False
    first, second = difference.args
    is_paired = story.shapes.pairs_all(first, second) or story.shapes.pairs_all(second, first)
    return is_paired and not any(is_reshaped(story, v) for v in difference.args)


def _are_pairs(value: Result, first: Shape, second: Shape) -> bool:
    """Tell whether predictions meet as many targets, and not another row."""
    if first[0] != second[0] or len([v for v in value.args if runs_behind(v)]) > 1:
        return False
    if first[0] is not None:
        return True
    below = [{id(v) for v in origins(side) if isinstance(v, Result)} for side in value.args]
    return bool(below[0] & below[1])  # rows of one batch


def _by_hand(difference: Result) -> Finding:
    return finding(
        "The loss takes a difference that broadcasts (N, 1) against (N)",
        "target-shape-broadcast",
        difference,
        cite(
            difference, f"`{source_text(difference)}` broadcasts (N, 1) against (N) to N x N pairs"
        ),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, {units}))
x = torch.tensor(frame[features].values)
y = {target}
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
criterion = nn.MSELoss()
for data, target in train_loader:
    output = model(data)
    {change}
    loss = criterion(output, target)
    loss.backward()
"""


def _program(target: str, change: str = "pass", units: int = 1) -> Run:
    text = _PROGRAM.format(target=target, change=change, units=units)
    return make_run(sources={"train.py": text})


_COLUMN = 'torch.tensor(frame["price"].values).float()'

_HAND = """
import torch

n = 50
x = torch.randn(n, 3)
y = {target}
w = torch.randn(3, 1, requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.01)
for step in range(100):
    output = x.mm(w)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _hand(target: str, loss: str = "((output - y) ** 2).mean()") -> Run:
    return make_run(sources={"train.py": _HAND.format(target=target, loss=loss)})


_ROWS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.x = torch.randn(100, 3)
        self.y = self.x.sum({axis})

    def __len__(self):
        return 100

    def __getitem__(self, i):
        return self.x[i], self.y[i]

net = nn.Linear(3, 1)
for x, y in DataLoader(Rows(), 10):
    (net(x) - y).abs().mean().backward()
"""

FIRES = {
    "rows of a dataset": make_run(sources={"train.py": _ROWS.format(axis="1")}),
    "by hand": _hand("2 * x[:, 0] + torch.randn(n)"),
    "a column of a table": _program(_COLUMN),
    "made flat": _program("torch.randn(100)"),
    "rows of a flat target": _program(_COLUMN, "target = y[:len(output)]"),
}

SILENT = {
    "near miss: columns of a dataset": make_run(
        sources={"train.py": _ROWS.format(axis="1, keepdim=True")}
    ),
    "near miss: by hand, of one shape": _hand("2 * x[:, 0:1]"),
    "near miss: by hand, grown in place": _hand("x[:, 0].clone()\ny.unsqueeze_(1)"),
    "near miss: by hand, flattened": _hand("x[:, 0]", "((output.view(-1) - y) ** 2).mean()"),
    "near miss: pairs on purpose": _hand("x[:, 0]", "(output.t() - output).abs().mean()"),
    "near miss: thresholds for every row": _hand(
        "torch.tensor([0.0, 1.0])", "torch.sigmoid(output - y).mean()"
    ),
    "near miss: one number for all": _hand("torch.tensor([2.0])"),
    "near miss: the target gets a dimension": _program(_COLUMN, "target = target.unsqueeze(1)"),
    "near miss: indexed to a column": _program(_COLUMN, "target = target[:, None]"),
    "near miss: a column before it is loaded": _program(f"{_COLUMN}[:, None]"),
    "near miss: an entry of a dictionary, of any shape": _program(
        _COLUMN, 'target = data["label"].float()'
    ),
    "near miss: an array by its name in a file": _program('torch.tensor(arrays["price"])'),
    "near miss: the target grows in place": _program("torch.randn(100)", "target.unsqueeze_(1)"),
    "near miss: the output loses one": _program(_COLUMN, "output = output.squeeze(1)"),
    "near miss: the shape of the target is out of sight": _program("load_targets()"),
    "a column on purpose": _program("torch.randn(100, 1)"),
}
