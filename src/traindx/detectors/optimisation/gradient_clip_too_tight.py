"""Gradients are clipped to so little that a step moves no weight."""

from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.gradient_bounds import (
    GradientBound,
    StepSize,
    gradient_bounds,
    step_sizes,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

# the norm of weights is some ten: steps of 1e-4 need a hundred thousand of them to change it
SMALL_NORM, SMALL_STEP = 1e-2, 1e-4
SMALL_VALUE, SMALL_CHANGE = 1e-3, 1e-5
# Adam divides by the size of gradients, until they come near its epsilon of 1e-8
NEAR_EPSILON = 1e-6


@detector(needs=("source",), suggests=("gradient-clipping-too-tight",))
def check(run: Run) -> Findings:
    """The bound on gradients times the learning rate is too small for any progress.

    ## What it detects
    A clip of the norm or of the values of gradients, by torch, by hand or by a trainer, whose bound
    times the learning rate of SGD (with momentum, its sum) leaves steps under 1e-4; or a bound near
    the epsilon of Adam, whose steps do not depend on the size of gradients otherwise.

    ## Why it matters
    Every step is cut to the same tiny length: the loss falls a little or not at all.

    ## What to do
    A norm of 0.5 to 1 is usual; log the norm before the clip and set the bound near its median.

    ## When it is wrong
    A rate that is raised to match, as of normalised gradient descent, is taken into account.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for bound in gradient_bounds(story):
            if bound.at.node not in seen and _is_tight(story, bound):
                seen.add(bound.at.node)
                yield finding(
                    f"Gradients are clipped to {bound.limit:g}: steps are too small to train",
                    "gradient-clipping-too-tight",
                    bound.at,
                    cite(bound.at, f"no gradient is larger than {bound.limit:g} behind this"),
                )


def _is_tight(story: Story, bound: GradientBound) -> bool:
    sizes = step_sizes(story)
    if sizes is None or bound.limit <= 0:
        return False
    return all(_is_small(bound, size) for size in sizes or [StepSize(None)])


def _is_small(bound: GradientBound, size: StepSize) -> bool:
    if size.gain is None:
        return bound.limit <= NEAR_EPSILON
    moved = bound.limit * size.gain
    if bound.is_norm:
        return bound.limit <= SMALL_NORM and moved <= SMALL_STEP
    return bound.limit <= SMALL_VALUE and moved <= SMALL_CHANGE


_LOOP = """
import torch
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.{optimizer}
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    {clip}
    optimizer.step()
"""
_SGD = "SGD(model.parameters(), lr=0.01)"


def _loop(clip: str, optimizer: str = _SGD) -> Run:
    return make_run(sources={"train.py": _LOOP.format(clip=clip, optimizer=optimizer)})


_NORM = "nn.utils.clip_grad_norm_(model.parameters(), {})"
_BY_HAND = """norm = sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt()
    for p in model.parameters():
        p.grad.mul_({} / norm)"""
_LIGHTNING = """
import lightning as L
import torch

class Net(L.LightningModule):
    def training_step(self, batch, i):
        return self.net(batch[0]).sub(batch[1]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

L.Trainer(gradient_clip_val={limit}).fit(Net(), loader)
"""


def _lightning(limit: str) -> Run:
    return make_run(sources={"train.py": _LIGHTNING.format(limit=limit)})


FIRES = {
    "the norm": _loop(_NORM.format("1e-4")),
    "values": _loop("nn.utils.clip_grad_value_(model.parameters(), clip_value=1e-5)"),
    "by hand": _loop(_BY_HAND.format("0.0005")),
    "a trainer's setting": _lightning("1e-4"),
    "near the epsilon of Adam": _loop(_NORM.format("1e-8"), "Adam(model.parameters())"),
}

SILENT = {
    "a usual bound": _loop(_NORM.format("1.0")),
    "near miss: a small bound with Adam": _loop(_NORM.format("1e-3"), "Adam(model.parameters())"),
    "near miss: a rate to match": _loop(_NORM.format("1e-3"), "SGD(model.parameters(), lr=100.0)"),
    "near miss: a rate that is not in sight": _loop(
        _NORM.format("1e-4"), "SGD(model.parameters(), lr=rate)"
    ),
    "near miss: by hand, to a usual norm": _loop(_BY_HAND.format("1.0")),
    "a trainer's usual setting": _lightning("0.5"),
}
