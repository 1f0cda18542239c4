"""A custom autograd function returned what no gradient can be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root

COUNT = re.compile(
    r"function (\w+?)(?:Backward)? returned an incorrect number of gradients "
    r"\(expected (\d+), got (\d+)\)"
)
SHAPE = re.compile(
    r"Function (\w+?)(?:Backward\d*)? returned an invalid gradient at index (\d+) - (.+)"
)


@detector(needs=("failure",), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Iterator[Finding]:
    """The backward of a custom function returns too few, too many or misshapen gradients.

    ## What it detects
    "returned an incorrect number of gradients (expected 2, got 1)" and "returned an invalid
    gradient at index 0 - got [3] but expected shape compatible with [2]".

    ## Why it matters
    `backward` has to return one gradient per argument of `forward`, in its shape.

    ## What to do
    Return None for arguments that need no gradient, sum over broadcast dimensions, and test with
    `torch.autograd.gradcheck` in float64.

    ## When it is wrong
    An invalid gradient of a built-in function (its name ends with Backward0) points at inputs of
    odd device, type or shape rather than at a function of yours.
    """
    hit = match_root(run, COUNT, SHAPE)
    if hit is None:
        return
    failure, found = hit
    if found.re is COUNT:
        said = f"returns {found[3]} gradients where forward takes {found[2]} arguments"
    else:
        said = (
            f"returns for argument {found[2]} of forward a gradient that does not fit: {found[3]}"
        )
    yield explain(
        run,
        failure,
        f"The backward of {found[1]} {said.rstrip('.')}",
        shows="incorrect-custom-backward",
        culprit=_culprit(run, found[1]),
    )


def _culprit(run: Run, name: str) -> Culprit | None:
    for module in project_of(run).modules:
        function = module.functions.get(f"{name}.backward")
        if function is not None:
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
            node = returns[-1] if returns else function
            return Culprit(module, node, f"{name}.backward returns this")
    return None


_SOURCE = """
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor
    @staticmethod
    def backward(ctx, grad):
        return grad
"""
_ERROR = (
    "RuntimeError: function ScaleBackward returned an incorrect number of gradients (expected 2, "
    "got 1)"
)

FIRES = {
    "too few": make_failed_run(_ERROR, "loss.backward()", sources={"ops.py": _SOURCE}),
    "wrong shape": make_failed_run(
        "RuntimeError: Function ScaleBackward returned an invalid gradient at index 0 - got [3] "
        "but expected shape compatible with [2]"
    ),
}

SILENT = {
    "near miss: NaN in backward": make_failed_run(
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory."),
}
