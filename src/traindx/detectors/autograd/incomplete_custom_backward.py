"""A custom autograd function whose backward does not fit its forward."""

from traindx.analysis.program.execution.values import Items, Known, Result, Value
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.custom_functions import CustomFunction, custom_functions
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
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
        for returned in function.gradients:
            fault = _miscount(function, returned)
            if fault:
                yield _finding(function, returned, f"`{function.name}.backward` {fault}")
                break
        read = function.unsaved_read()
        if read is not None:
            what = f"`{function.name}.backward` reads saved tensors, and forward saves none"
            yield _finding(function, read, what)
        alone = function.ignored_upstream()
        if alone is not None:
            what = f"`{function.name}.backward` does not multiply by the gradient of its output"
            yield _finding(function, alone, what)


def _finding(function: CustomFunction, value: Value, claim: str) -> Finding:
    place = value if value.site is not None else function.backward
    return finding(
        claim,
        "incorrect-custom-backward",
        place,
        cite(place, "here"),
        cite(function.cls, "the inputs of its forward count"),
        is_symptom=True,
    )


def _miscount(function: CustomFunction, returned: Value) -> str:
    counts, got = function.counts(), _counted(returned)
    if counts is None or got is None:
        return ""
    needed, inputs = counts
    is_surplus = any(not (isinstance(v, Known) and v.value is None) for v in got[inputs:])
    if len(got) < needed or (is_surplus and inputs > 0):
        values = "one value" if len(got) == 1 else f"{len(got)} values"
        return f"returns {values} for {inputs} inputs of forward"
    return ""


def _counted(returned: Value) -> list[Value] | None:
    """The values that backward returns; None where their number is out of sight."""
    if isinstance(returned, Items):
        return returned.members if returned.is_whole and returned.kind == "tuple" else None
    is_one = isinstance(returned, Result) and returned.maker.startswith("operator.")
    return [returned] if is_one else None


_FUNCTION = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, {inputs}):
        {saved}
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        {body}
"""


def _function(body: str, inputs: str = "weight", saved: str = "ctx.save_for_backward(x)") -> Run:
    text = _FUNCTION.format(body=body, inputs=inputs, saved=saved)
    return make_run(sources={"scale.py": text})


_LOSS = """
import torch

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
"""


def _loss(gradient: str, loss: str) -> Run:
    return make_run(sources={"train.py": _LOSS.format(gradient=gradient, loss=loss)})


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
