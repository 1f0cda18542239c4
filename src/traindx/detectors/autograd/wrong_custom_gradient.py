from traindx.analysis.program.training.claims import finding, program_of, shown
from traindx.analysis.program.training.custom_functions import custom_functions
from traindx.analysis.program.training.slopes import wrong_slope
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Findings:
    """The gradient of a function of one's own is not the slope of its forward.

    ## What it detects
    A class with `forward` and `backward` of one tensor, made of arithmetic, comparisons, `where`,
    `clamp` and usual activations. Both are worked out at ten points: the gradient must not have the
    sign opposite to the slope, nor be 0 wherever there is a slope and pass where there is none, nor
    be negative where a function falls nowhere. For a smooth function it must be the slope, up to a
    constant factor. Smooth functions of several tensors, with sums, means and products of matrices,
    are compared with finite differences on small matrices.

    ## Why it matters
    The layers below are led away from the optimum, or get nothing where it matters. The loss may
    still fall a little, since the layers above learn.

    ## What to do
    Return `grad` times the derivative of `forward`, and test it with `torch.autograd.gradcheck`.

    ## When it is wrong
    Gradients that are other than the slope on purpose are left alone: straight-through estimators
    and surrogates of functions with steps or kinks, and the reversal of the gradient of a line.
    """
    for function in custom_functions(program_of(run)):
        wrong = wrong_slope(function)
        if wrong is not None:
            place = shown(wrong[1], function.backward)
            yield finding(
                f"The backward of {function.name} {wrong[0]}",
                (shown(function.forward.result, function.forward), "the function"),
                (place, "its gradient, as it is written"),
                at=place,
            )


_run = template("""
class Act(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {backward}
y = Act.apply(torch.ones(3))
""")

_PRODUCT = """
class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = {gx}
        if ctx.needs_input_grad[1]:
            gw = x.t() @ g
        return gx, gw
y = Project.apply(torch.ones(3, 3), torch.ones(3, 3))
"""

_NORM = """
class Center(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        s = x.pow(2).sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x, scale, s)
        return scale * x / s
    @staticmethod
    def backward(ctx, g):
        x, scale, s = ctx.saved_tensors
        h = g * scale
        return {gx}, (g * x / s).sum(0)
y = Center.apply(torch.ones(3, 3), torch.ones(3))
"""

FIRES = {
    "the matrix is not transposed": script(_PRODUCT, path="t.py", gx="g @ w"),
    "the norm is taken for a constant": script(_NORM, path="t.py", gx="h / s"),
    "the mask is the wrong way round": _run("x.clamp(min=0)", "grad * (x < 0)"),
    "the sign is wrong": _run(
        "torch.where(x > 0, x, 0.1 * x)", "-grad * torch.where(x > 0, 1, 0.1)"
    ),
    "the input in place of the slope": _run("x.clamp(min=0)", "grad * x"),
    "a sigmoid with a minus": _run(
        "torch.sigmoid(x)", "grad * torch.sigmoid(x) * (torch.sigmoid(x) - 1)"
    ),
}

SILENT = {
    "near miss: the matrix is transposed": script(_PRODUCT, path="t.py", gx="g @ w.t()"),
    "near miss: the slope of the norm": script(
        _NORM, path="t.py", gx="h / s - x * (h * x).sum(-1, keepdim=True) / s.pow(3)"
    ),
    "near miss: both inputs are one": script(
        _PRODUCT.format(gx="g @ w.t()").replace(
            "y = Project.apply(torch.ones(3, 3), torch.ones(3, 3))",
            "z = torch.ones(3, 3)\ny = Project.apply(z, z)",
        ),
        path="t.py",
    ),
    "near miss: clipped on purpose": script(
        _PRODUCT, path="t.py", gx="(g @ w.t()).clamp(-0.1, 0.1)"
    ),
    "near miss: half of the slope on purpose": script(
        _PRODUCT, path="t.py", gx="0.5 * (g @ w.t())"
    ),
    "right": _run("x.clamp(min=0)", "grad * (x > 0).float()"),
    "near miss: straight through a step": _run("torch.sign(x)", "grad * (x.abs() < 1)"),
    "near miss: a gradient is reversed on purpose": _run("x.clone()", "-grad"),
    "near miss: a smooth surrogate": _run("x.clamp(min=0)", "grad * torch.sigmoid(4 * x)"),
    "near miss: passes beyond the clamp": _run("x.clamp(-1, 1)", "grad"),
    "not understood": _run("my_kernel(x)", "-grad * other_kernel(x)"),
}
