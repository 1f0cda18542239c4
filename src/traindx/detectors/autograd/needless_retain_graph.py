"""A plain training loop keeps its graph after the only backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import training_loops
from traindx.source.module import argument, literal


@detector(needs=("source",), suggests=("graph-retained-across-steps",))
def check(run: Run) -> Iterator[Finding]:
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
    for loop in training_loops(project_of(run)):
        backwards = loop.does(Do.BACKWARD)
        targets = {a.target for a in loop.does(Do.STEP, Do.SCALER_STEP)}
        if len(backwards) != 1 or len(targets) != 1 or loop.does(Do.GRAD):
            continue
        inner = backwards[0].loops[-1]
        if not any(inner in a.loops for a in loop.does(Do.FORWARD, Do.LOSS)):
            continue  # several backwards through one graph
        call = backwards[0].node
        if not isinstance(call, ast.Call):
            continue
        option = argument(call, "retain_graph")
        if literal(option) is not True or argument(call, "create_graph") is not None:
            continue
        yield Finding(
            claim="The only backward of the loop retains its graph",
            strength=Strength.MODERATE,
            evidence=(backwards[0].module.cite(call, "retain_graph=True, and no second backward"),),
            suggests={"graph-retained-across-steps": Strength.MODERATE},
            location=backwards[0].location,
        )


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


FIRES = {"the only backward": _loop("loss.backward(retain_graph=True)")}

SILENT = {
    "not retained": _loop("loss.backward()"),
    "near miss: two losses share a graph": _loop(
        "loss.backward(retain_graph=True); penalty.backward()"
    ),
}
