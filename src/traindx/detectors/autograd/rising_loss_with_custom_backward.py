import numpy as np

from traindx.analysis.curves import only_rises
from traindx.analysis.program.training.claims import cite as cite_code
from traindx.analysis.program.training.claims import location_of, program_of
from traindx.analysis.program.training.custom_functions import custom_functions
from traindx.examples import Floats, decay, flat, join, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

POINTS = 20


@detector(needs=("loss", "source"), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Findings:
    """The loss only ever rises, and the source defines a backward of its own.

    ## What it detects
    A training loss that never gets below its first level and climbs from stage to stage of the run,
    in a project with a class derived from `torch.autograd.Function` that is applied.

    ## Why it matters
    A sign error in `backward` turns descent into ascent. It looks like a learning rate that is too
    high, and no learning rate helps.

    ## What to do
    Compare the function with numerical differences: `torch.autograd.gradcheck` in float64.

    ## When it is wrong
    A learning rate that is far too high makes the loss climb from the first step too: lower it a
    hundredfold, and if the loss still climbs, it is the gradient. A function that passes its input
    on unchanged is there for its gradient (reversal, scaling, straight-through) and left alone.
    """
    loss = run.objective()
    if loss is None:
        return
    finite = loss.finite()
    if len(finite) < POINTS or not only_rises(finite.values):
        return
    for function in custom_functions(program_of(run)):
        if not function.is_applied or function.passes_on():
            continue
        returned = function.backward.result
        place = returned if returned is not None and returned.site else function.backward
        stages = f"{finite.origin.name} starts at {finite.values[0]:.3g} and only rises"
        yield finding(
            f"The loss only rises, and the custom backward of {function.name} may be wrong",
            {"incorrect-custom-backward": Strength.STRONG},
            cite(finite, stages, 0, -1),
            cite_code(place, f"{function.name} defines its own backward"),
            against={"lr-too-high": Strength.STRONG},
            place=location_of(place),
        )


_SOURCE = """
import torch
class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, -grad, 0.1 * grad)
for x, y in loader:
    loss = criterion(model(Leaky.apply(x)), y)
"""
_REVERSAL = """
import torch
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None
for x, y in loader:
    loss = criterion(model(Reverse.apply(x, 1.0)), y)
"""
_CLIMB = 2.3 * np.exp(np.linspace(0.0, 3.0, 100))


def _run(loss: Floats, source: str = _SOURCE) -> Run:
    return logged(loss_train=loss, sources={"train.py": source})


FIRES = {"a sign error": _run(_CLIMB)}

SILENT = {
    "a custom function that learns": _run(decay(100)),
    "near miss: it learnt first, then diverged": _run(join(decay(50), _CLIMB[:50])),
    "near miss: a climb without a function of one's own": _run(_CLIMB, "import torch\n"),
    "near miss: a gradient reversal": _run(_CLIMB, _REVERSAL),
    "flat": _run(flat(100, 2.3, noise=0.02)),
}
