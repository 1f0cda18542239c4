"""A derivative was needed that an operation does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

NONE = re.compile(r"derivative for '?([\w:.]+)'? is not implemented")
ONCE = re.compile(r"differentiate twice a function that was marked with @once_differentiable")
SECOND = re.compile(
    r"(\w+)(?:Backward\w*)?: (?:does not support|is not) double (?:backward|differentiable)"
    r"|double (?:backward|differentiation).{0,60}not (?:supported|implemented)"
    r"|torch\.compile with aot_autograd does not currently support double backward"
)
DISCRETE = re.compile(r"Only Tensors of floating point (?:and complex )?dtype can require grad")


@detector(needs=("failure",), suggests=("non-differentiable-operation", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
    """Backward reaches an operation without a derivative, or without a second one.

    ## What it detects
    "derivative for … is not implemented", "trying to differentiate twice a function that was marked
    with @once_differentiable", other refusals of a double backward, and integer tensors that are
    asked to require a gradient.

    ## Why it matters
    Gradient penalties and meta-learning (`create_graph=True`) differentiate the gradient, which
    not every operation allows.

    ## What to do
    Replace the operation by one with a derivative: for attention in a gradient penalty the plain
    math kernel, for a custom function a backward made of differentiable operations.

    ## When it is wrong
    If the second derivative is not needed, drop `create_graph=True` instead.
    """
    hit = match_root(run, NONE, ONCE, SECOND, DISCRETE)
    if hit is None:
        return
    failure, found = hit
    if found.re is DISCRETE:
        claim, shows = "An integer tensor is asked to require a gradient", "api-misuse"
    elif found.re is NONE:
        claim = f"Backward needs the derivative of {found[1]}, which has none"
        shows = "non-differentiable-operation"
    else:
        claim = "The gradient itself is differentiated, and an operation in it allows that once"
        shows = "api-misuse"
    yield explain(run, failure, claim, shows=shows)


FIRES = {
    "none at all": make_failed_run(
        "RuntimeError: derivative for aten::_scaled_dot_product_flash_attention_backward is not "
        "implemented",
        "gp.backward()",
    ),
    "only once": make_failed_run(
        "RuntimeError: trying to differentiate twice a function that was marked with "
        "@once_differentiable"
    ),
    "an integer": make_failed_run(
        "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
    ),
}

SILENT = {
    "near miss: an operator is missing for a type": make_failed_run(
        "RuntimeError: \"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
