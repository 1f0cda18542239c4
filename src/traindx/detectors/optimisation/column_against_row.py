"""A column of predictions meets a flat row of targets."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.columns import is_flat, output_of
from traindx.source.losses import LossCall, losses_in, wants
from traindx.source.patches import diff, replacing


@detector(needs=("source",), suggests=("target-shape-broadcast",))
def check(run: Run) -> Iterator[Finding]:
    """Predictions of shape (N, 1) are compared with targets of shape (N).

    ## What it detects
    A squared, absolute or Huber loss whose input is the output of a linear layer with one unit, in
    its own shape, and whose target has one dimension for certain: made from a column of a table or
    by a factory with a single size, and given no second dimension on the way.

    ## Why it matters
    Broadcasting compares every prediction with every target, N × N pairs. The loss is a number,
    gradients flow, and the model learns the mean of the targets.

    ## What to do
    Give both the same shape: `output.squeeze(1)`, or `target.unsqueeze(1)`.

    ## When it is wrong
    Where either shape is out of sight nothing is said.
    """
    project = project_of(run)
    for loss in losses_in(project):
        if wants(loss) != "same-shape" or loss.input is None or loss.target is None:
            continue
        output = output_of(project, loss.module, loss.scope, loss.input)
        if output is None or output.units != 1:
            continue
        flat = is_flat(project, loss.module, loss.scope, loss.target)
        if flat is None:
            continue
        yield Finding(
            claim=f"{loss.label} compares predictions of shape (N, 1) with targets of shape (N)",
            strength=Strength.STRONG,
            evidence=(
                loss.module.cite(loss.call, "the two meet here and broadcast to (N, N)"),
                output.module.cite(output.layer, "one output unit: (N, 1)"),
                loss.module.cite(flat, "one dimension: (N)"),
            ),
            shows="target-shape-broadcast",
            is_symptom=True,
            location=loss.module.location(loss.call),
            patch=_patch(loss),
        )


def _patch(loss: LossCall) -> str | None:
    if loss.input is None:
        return None
    text = loss.module.source(loss.input)
    return diff(loss.module, replacing(loss.input, f"{text}.squeeze(1)"))


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

FIRES = {
    "a column of a table": _program(_COLUMN),
    "made flat": _program("torch.randn(100)"),
}

SILENT = {
    "near miss: the target gets a dimension": _program(_COLUMN, "target = target.unsqueeze(1)"),
    "near miss: the output loses one": _program(_COLUMN, "output = output.squeeze(1)"),
    "near miss: the shape of the target is out of sight": _program("load_targets()"),
    "a column on purpose": _program("torch.randn(100, 1)"),
}
