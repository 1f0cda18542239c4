from traindx.analysis.errors.graph_messages import INPUT_OUTSIDE_THE_GRAPH
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("unused-parameters", "detached-loss"))
def check(run: Run) -> Findings:
    """`autograd.grad` is called for a tensor that the output does not depend on.

    ## What it detects
    "One of the differentiated Tensors appears to not have been used in the graph" and, in newer
    versions, the index of the tensor in the list.

    ## Why it matters
    Either a part of the model has no influence on the loss, which is a fault of the model, or the
    path to it was cut.

    ## What to do
    Find which parameter it is, and use it or leave it out of the list. `allow_unused=True` returns
    None for it and hides a missing connection.

    ## When it is wrong
    Meta-learning with parameters that only some tasks use means it so; then `allow_unused=True` is
    right.
    """
    yield from findings(run, INPUT_OUTSIDE_THE_GRAPH)


FIRES = {
    "by index": failed(
        "RuntimeError: The differentiated Tensor at index 3 appears to not have been used in the "
        "graph. Set allow_unused=True if this is the desired behavior.",
        "grads = torch.autograd.grad(loss, model.parameters())",
    ),
    "without": failed(
        "RuntimeError: One of the differentiated Tensors appears to not have been used in the "
        "graph. Set allow_unused=True if this is the desired behavior."
    ),
}

SILENT = {
    "near miss: no graph at all": failed(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "another error": failed("KeyError: 'label'"),
}
