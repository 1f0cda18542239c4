from traindx.analysis.program.training.claims import finding, program_of, shown
from traindx.analysis.program.training.custom_functions import custom_functions
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Findings:
    """A custom autograd function leaves out gradients, saved tensors or the gradient it is given.

    ## What it detects
    A `torch.autograd.Function` whose `backward` returns fewer values than `forward` has inputs (or
    more, and not None), one whose `backward` reads `ctx.saved_tensors` that nothing saved, and one
    whose gradients do not depend on that of its output, where a loss is more than this output.

    ## Why it matters
    Backward raises, a gradient goes to the wrong input, or whatever is done to the output (weights
    of a loss, layers above) is lost on the way back.

    ## What to do
    Return one value per input of `forward`, in order, None where there is no gradient; multiply
    each by the gradient that `backward` is given.

    ## When it is wrong
    Inputs with defaults may be left out by the caller and are counted generously; tuples built
    elsewhere are not counted. A function that is the loss itself gets a gradient of 1.
    """
    for function in custom_functions(program_of(run)):
        for value, fault in function.faults():
            place = shown(value, function.backward)
            yield finding(
                f"`{function.name}.backward` {fault}",
                (place, "in this line of backward"),
                (function.cls, "forward and backward are defined here"),
            )


_function = template("""
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, {inputs:weight}):
        {saved:ctx.save_for_backward(x)}
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        {body}
""")

_loss = template("""
class Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x - y)
        return (x - y).pow(2).mean()

    @staticmethod
    def backward(ctx, grad):
        (d,) = ctx.saved_tensors
        return {gradient}, None

net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

FIRES = {
    "a weighted loss": _loss("2 * d / d.numel()", "0.1 * Squares.apply(net(x), y)"),
    "one value for two inputs": _function("return grad * 2"),
    "three values for two inputs": _function("return grad, grad, grad"),
    "nothing was saved": _function(
        "x, = ctx.saved_tensors\n        return grad * x, None", saved="pass"
    ),
}

SILENT = {
    "near miss: a loss on its own": _loss("2 * d / d.numel()", "Squares.apply(net(x), y)"),
    "a weighted loss, multiplied": _loss(
        "grad * 2 * d / d.numel()", "0.1 * Squares.apply(net(x), y)"
    ),
    "one per input": _function("return grad, None"),
    "near miss: an extra None is allowed": _function("return grad, None, None"),
    "near miss: an input with a default": _function("return grad, None", "weight, power=2"),
    "a tuple from elsewhere": _function("return tuple(grads)"),
}
