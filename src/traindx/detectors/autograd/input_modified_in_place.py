"""A tensor is overwritten in place before backward needs it."""

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Part, Result, Value
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.gradients import runs_reached
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.saved_tensors import Overwritten, overwritten
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "in-place-modification"
VIEWS = frozenset({"getitem", "view", "select", "narrow", "squeeze", "unsqueeze", "t", "transpose",
                   "permute", "expand", "chunk", "split", "unbind"})  # fmt: skip


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A tensor that an operation saved for its gradient is changed in place, and backward follows.

    ## What it detects
    `x[:, t + 1] = layer(x[:, t])`: what is stored in a tensor is the output of a layer with weights
    that ran on a view of the same tensor, with gradients on, and a loss is computed from it. And
    `x /= x.std()`, `h = relu(h); h += x`, `p = softmax(s); p[mask] = 0`: a change of what an
    operation was given or returned, from which its gradient is computed.

    ## Why it matters
    The operation has kept that tensor for its gradient. A write to any part of it makes backward
    raise "modified by an inplace operation".

    ## What to do
    Write the change out of place (`x = x / x.std()`), collect parts in a list and `torch.stack`
    them, or give the layer a `clone()`.

    ## When it is wrong
    Writes under `no_grad`, slices that are cloned first, and tensors that no loss is computed from
    are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            if event.act is not EventForm.STORE or event.name != "[]" or event.node in seen:
                continue
            owner = event.receiver
            if not isinstance(owner, Result) or event.gradients is not Answer.YES:
                continue
            run_ = next((r for r in runs_reached(event.args[0]) if _takes_view(r, owner)), None)
            if run_ is not None and feeds_backward(story, owner):
                seen.add(event.node)
                yield _finding(event, run_)
        for found in overwritten(story):
            if found.change.node not in seen:
                seen.add(found.change.node)
                yield _overwritten(found)


def _takes_view(layer: Result, owner: Value) -> bool:
    """Tell whether a layer ran on a part of a tensor that shares its memory."""
    for value in layer.args:
        current: Value = value
        for _ in range(12):
            if current is owner:
                return current is not value
            operation = operation_of(current)
            if isinstance(current, Part):
                current = current.of
            elif operation is not None and operation.name in VIEWS and operation.operands:
                current = operation.operands[0]
            else:
                break
    return False


def _finding(event: ProgramEvent, layer: Result) -> Finding:
    place = layer if layer.site is not None else event
    return finding(
        "A tensor is overwritten in place after a layer took a slice of it: backward will raise",
        CAUSE,
        event,
        cite(event, "written in place here"),
        cite(place, "the layer keeps its input, a view of that tensor, for backward"),
        is_symptom=True,
    )


def _overwritten(found: Overwritten) -> Finding:
    return finding(
        "A tensor that backward needs is changed in place: backward will raise",
        CAUSE,
        found.change,
        cite(found.change, "changed in place here"),
        cite(found.saver, "its gradient is computed from that tensor as it was here"),
        is_symptom=True,
    )


_ROLLOUT = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())

def rollout(field, start, steps=20):
    path = torch.empty(start.size(0), steps + 1, 2)
    path[:, 0] = start
    for k in range(steps):
        {step}
    return path

for start, wanted in train_loader:
    optimizer.zero_grad()
    loss = (rollout(net, start) - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
_ROW = """
import torch
from torch import nn

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x):
        states = torch.zeros(10, x.size(0), 4)
        for t in range(1, 10):
            {step}
        return states

model = Recurrent()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


def _rollout(step: str) -> Run:
    return make_run(sources={"train.py": _ROLLOUT.format(step=step)})


def _row(step: str) -> Run:
    return make_run(sources={"train.py": _ROW.format(step=step)})


FIRES = {
    "divided by its own deviation": _row("x = self.cell(x); x /= x.std(); states[t] = x"),
    "the output of an activation": _row("x = torch.relu(self.cell(x)); x += 1; states[t] = x"),
    "a path, step by step": _rollout("path[:, k + 1] = path[:, k] + 0.1 * field(path[:, k])"),
    "rows of states": _row("states[t] = torch.tanh(self.cell(states[t - 1]))"),
}

SILENT = {
    "near miss: its mean is subtracted": _row("x = self.cell(x); x -= x.mean(); states[t] = x"),
    "near miss: a residual added to a linear layer": _row(
        "h = self.cell(torch.relu(x)); h += x; states[t] = h"
    ),
    "near miss: a copy is given": _rollout(
        "path[:, k + 1] = path[:, k] + 0.1 * field(path[:, k].clone())"
    ),
    "near miss: the output of another tensor": _row("states[t] = torch.tanh(self.cell(x))"),
    "near miss: a state of its own": _rollout(
        "start = start + 0.1 * field(start); path[:, k + 1] = start"
    ),
}
