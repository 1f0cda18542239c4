"""Gradients are clipped to almost nothing."""

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.step_sizes import (
    ClipBound,
    ParameterGroup,
    clip_bounds,
    groups_of,
    is_adaptive,
)
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "gradient-clipping-too-tight"
MOVED = 2e-4  # of the norm of all weights in one step: a layer's, some units, needs 10,000 steps
EACH = 2e-6  # of each weight in one step; weights are some hundredths
TIGHT = 0.02  # a larger bound is usual, whatever the rate
VANISHING = 1e-6  # below it even an optimizer that divides by the gradients' size has its epsilon


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Gradients are clipped to a bound at which no step moves the weights.

    ## What it detects
    A clip between backward and the step with a bound of zero; one below 0.02 that, times the
    learning rate and with momentum, lets all weights together move by less than 2e-4 in a step (or
    each by less than 2e-6, where single numbers are clipped); with Adam and its kin, which divide
    by the size of the gradients, only one below 1e-6.

    ## Why it matters
    Every batch is clipped: the step has the same tiny length everywhere, and the loss stays.

    ## What to do
    Clip at 1.0 or 5.0, or at the largest norm that a healthy run of yours shows.

    ## When it is wrong
    A clip that is only done where its bound is asked for is left alone, and so is a rate that the
    source does not say, unless the bound is below 1e-5.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for bound in clip_bounds(story):
            if bound.clip.event.node in seen or not _is_tight(story, bound):
                continue
            seen.add(bound.clip.event.node)
            yield finding(
                f"Gradients are clipped to {bound.number:g}: no step moves the weights",
                CAUSE,
                bound.clip,
                cite(bound.clip, f"the bound is {bound.number:g}"),
                cite(bound.step, "and this step applies what is left"),
                is_symptom=True,
            )


def _is_tight(story: Story, bound: ClipBound) -> bool:
    optimizer = bound.step.subject
    if bound.number == 0:
        return True
    if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
        return False
    if is_adaptive(optimizer):
        return bound.number <= VANISHING
    rates = [(g.rate, g.momentum) for g in groups_of(story) if g.optimizer is optimizer]
    known = [
        (1.0 if r is None else r) / (1 - (0.9 if m is None or m >= 1 else m)) for r, m in rates
    ]
    moved = bound.number * max(known, default=10.0)
    return bound.number < TIGHT and moved < (MOVED if bound.is_norm else EACH)


def _reach(group: ParameterGroup) -> float:
    """How far a step goes for a gradient of one; what is not known is taken to be large."""
    rate, momentum = group.rate, group.momentum
    is_known = momentum is not None and momentum < 1
    kept = momentum if is_known and momentum is not None else 0.9
    return (1.0 if rate is None else rate) / (1 - kept)


_LOOP = """
import torch
from torch import nn

{before}
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.{optimizer}
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    {clip}
    optimizer.step()
"""
_SGD = "SGD(net.parameters(), lr=0.01, momentum=0.9)"


def _loop(clip: str, optimizer: str = _SGD, before: str = "") -> Run:
    text = _LOOP.format(clip=clip, optimizer=optimizer, before=before)
    return make_run(sources={"train.py": text})


_NORM = "nn.utils.clip_grad_norm_(net.parameters(), {})"
_OPTION = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--clip", type=float, default=0.0)
args = parser.parse_args()"""

FIRES = {
    "norm": _loop(_NORM.format("1e-5")),
    "each number": _loop("nn.utils.clip_grad_value_(net.parameters(), 1e-7)"),
    "zero": _loop(_NORM.format("0"), "AdamW(net.parameters())"),
    "clamped by hand": _loop("for p in net.parameters(): p.grad.clamp_(-1e-7, 1e-7)"),
}
SILENT = {
    "usual": _loop(_NORM.format("1.0")),
    "near miss: Adam does not mind": _loop(_NORM.format("1e-4"), "Adam(net.parameters())"),
    "near miss: only where it is asked for": _loop(
        "if args.clip > 0: " + _NORM.format("args.clip"), before=_OPTION
    ),
    "near miss: a large rate": _loop(_NORM.format("0.01"), "SGD(net.parameters(), lr=1.0)"),
}
