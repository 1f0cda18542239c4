"""A column of predictions meets a flat row of targets."""

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.claims import (
    argument_site,
    cite,
    finding,
    replace,
    source_text,
)
from traindx.analysis.program.training.pairing import paired_losses
from traindx.analysis.program.training.program import Computed, Story, program_of
from traindx.analysis.program.training.shapes import (
    is_reshaped,
    is_row_of_batch,
    last_size,
    shape_of,
)
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@detector(needs=("source",), suggests=("target-shape-broadcast",))
def check(run: Run) -> Findings:
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
        for difference in paired_losses(story):
            if difference.site is not None and difference.site.node not in seen:
                seen.add(difference.site.node)
                yield _by_hand(difference)


def _meet(story: Story, column: Value, row: Value) -> bool:
    """Tell whether one side is a column for certain, and the other one flat."""
    is_row = is_row_of_batch(row) and last_size(column) == 1
    is_row = is_row or story.shapes.pairs_all(column, row)
    return is_row and not any(is_reshaped(story, v) for v in (column, row))


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


def _by_hand(difference: Result) -> Finding:
    shapes = [shape_of(v) for v in difference.args]
    shown = " against ".join(
        str(tuple("N" if s is None else s for s in shape or ())).replace("'", "")
        for shape in shapes
    )
    return finding(
        "The loss takes a difference that broadcasts (N, 1) against (N)",
        "target-shape-broadcast",
        difference,
        cite(difference, f"`{source_text(difference)}` broadcasts {shown} to N x N pairs"),
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


_VALUES = """
import torch
from torch import nn

online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
older = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(online.parameters(), lr=1e-3)

def learn(batch):
    state, action, reward, after, done = batch
    value = online(state).gather(1, action.unsqueeze(1))
    with torch.no_grad():
        wanted = reward + 0.9 * (1 - done) * older(after).max({axis})[0]
    {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()

for step in range(1000):
    learn(memory.sample(32))
"""


def _values(axis: str = "1", loss: str = "loss = (wanted - value).pow(2).mean()") -> Run:
    return make_run(sources={"train.py": _VALUES.format(axis=axis, loss=loss)})


_ROWS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 10)
        self.y = self.x.sum(1)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i], self.y[i]{more}

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in DataLoader(Rows(500), 32, shuffle=True):
    opt.zero_grad()
    nn.HuberLoss()(net(x), y).backward()
    opt.step()
"""

_RANKS = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
X, y = torch.randn(500, 6), torch.randn(500)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for idx in torch.randperm(500).split(50):
    s, t = net(X[idx]).squeeze(1), y[idx]
    loss = nn.functional.softplus(-(s[:, None] - s) * (t[:, None] - t).sign()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

FIRES = {
    "values of actions against their targets": _values(),
    "values of actions in a loss of torch": _values(
        loss="loss = nn.functional.smooth_l1_loss(value, wanted)"
    ),
    "an example with one number for a target": make_run(
        sources={"train.py": _ROWS.format(more="")}
    ),
    "by hand": _hand("2 * x[:, 0] + torch.randn(n)"),
    "a column of a table": _program(_COLUMN),
    "made flat": _program("torch.randn(100)"),
    "rows of a flat target": _program(_COLUMN, "target = y[:len(output)]"),
}

SILENT = {
    "near miss: values of actions, both columns": _values("1, keepdim=True"),
    "near miss: an example with a column": make_run(
        sources={"train.py": _ROWS.format(more="[None]")}
    ),
    "near miss: all pairs of a ranking": make_run(sources={"train.py": _RANKS}),
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
