from traindx.analysis.errors.graph_messages import MISSING_DERIVATIVE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("non-differentiable-operation", "api-misuse"))
def check(run: Run) -> Findings:
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
    yield from findings(run, MISSING_DERIVATIVE)


FIRES = {
    "none at all": failed(
        "RuntimeError: derivative for aten::_scaled_dot_product_flash_attention_backward is not "
        "implemented",
        "gp.backward()",
    ),
    "only once": failed(
        "RuntimeError: trying to differentiate twice a function that was marked with "
        "@once_differentiable"
    ),
    "an integer": failed(
        "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
    ),
}

SILENT = {
    "near miss: an operator is missing for a type": failed(
        "RuntimeError: \"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"
    ),
    "another error": failed("KeyError: 'label'"),
}
