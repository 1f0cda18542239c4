"""A plain training loop keeps its graph after the only backward."""

from traindx.analysis.program.execution.values import constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.losses import losses
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Strength
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("graph-retained-across-steps",))
def check(run: Run) -> Findings:
    """A loop with a single backward asks to retain the graph.

    ## What it detects
    `loss.backward(retain_graph=True)` as the only backward of a training loop, which neither takes
    other gradients nor steps a second optimizer.

    ## Why it matters
    Nobody uses the graph again within the step, so the option usually silences the error of a
    graph that crosses steps (a hidden state, a running loss): memory and time then grow.

    ## What to do
    Remove the option; if backward then fails, detach what is carried from step to step.

    ## When it is wrong
    A loss that keeps part of its graph on purpose over a few steps (truncated backpropagation
    through time written by hand) needs it.
    """
    for story in program_of(run).stories:
        for loop in training_loops(story):
            backward = _only_backward(loop)
            if backward is None or constant(backward.event.argument("retain_graph")) is not True:
                continue
            if backward.event.argument("create_graph") is None:
                yield finding(
                    "The only backward of the loop retains its graph",
                    "graph-retained-across-steps",
                    backward,
                    cite(backward, "retain_graph=True, and no second backward"),
                    strength=Strength.MODERATE,
                    hint=Strength.MODERATE,
                )


def _only_backward(loop: Loop) -> Deed | None:
    """The one backward pass of a loop, where each turn of it makes a graph of its own."""
    backwards = {d.event.node: d for d in loop.does(Do.BACKWARD)}
    stepped = {id(d.subject) for d in loop.does(Do.STEP)}
    if len(backwards) != 1 or len(stepped) != 1 or loop.does(Do.GRAD):
        return None
    (backward,) = backwards.values()
    turns = backward.event.turns
    computed = [*(d.event for d in loop.does(Do.FORWARD)), *losses(loop.story, loop.events)]
    return backward if any(e.turns[: len(turns)] == turns for e in computed) else None


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    {backward}
    optimizer.step()
"""


def _loop(backward: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(backward=backward)})


_METHOD = """
import torch
from torch import nn

class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters())

    def backward(self, loss):
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.backward(nn.functional.mse_loss(self.model(x), y))
"""

FIRES = {
    "in a method": make_run(sources={"train.py": _METHOD}),
    "the only backward": _loop("loss.backward(retain_graph=True)"),
}

SILENT = {
    "not retained": _loop("loss.backward()"),
    "near miss: two losses share a graph": _loop(
        "loss.backward(retain_graph=True); penalty.backward()"
    ),
}
