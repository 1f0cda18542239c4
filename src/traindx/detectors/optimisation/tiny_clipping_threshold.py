from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.step_sizes import tight_clips
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("gradient-clipping-too-tight",))
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
    for bound in each_place(run, tight_clips, at=lambda bound: bound.clip.event.node):
        yield finding(
            f"Gradients are clipped to {bound.number:g}: no step moves the weights",
            (bound.clip, f"the bound is {bound.number:g}"),
            (bound.step, "and this step applies what is left"),
        )


_LOOP = """
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

_loop = template(_LOOP, "clip", optimizer=_SGD, before="")

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
