from traindx.analysis.errors.graph_blame import why_second_backward
from traindx.analysis.errors.graph_messages import SECOND_BACKWARD
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.program import project_of
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("graph-freed", "graph-retained-across-steps"))
def check(run: Run) -> Findings:
    """Backward runs a second time through a graph that the first time freed.

    ## What it detects
    "Trying to backward through the graph a second time". With the source: state that one step
    hands to the next without `detach()`, a running sum on which `backward` is called, a loss that
    is computed before the loop, or two calls of `backward` that share one forward pass.

    ## Why it matters
    `retain_graph=True`, which the message proposes, silences it and keeps all earlier graphs in
    memory; it is right only where two losses share one forward pass on purpose.

    ## What to do
    Detach what is carried from step to step; sum losses that share a forward pass and call
    `backward` once.

    ## When it is wrong
    Without the source the message is the same for both. If the first step passes
    and the second fails, something is carried over.
    """
    known = known_error(run, SECOND_BACKWARD)
    if known is not None:
        cause, culprit = why_second_backward(project_of(run))
        yield finding(known, cause=cause, culprit=culprit)


_ERROR = (
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed)."
)
_LOOP = """
import torch
model = torch.nn.GRU(8, 16)
optimizer = torch.optim.Adam(model.parameters())
hidden = torch.zeros(1, 4, 16)
for x, y in loader:
    optimizer.zero_grad()
    out, hidden = model(x, hidden)
    loss = torch.nn.functional.mse_loss(out, y)
    loss.backward()
    optimizer.step()
"""

FIRES = {
    "the message alone": failed(_ERROR, "loss.backward()"),
    "a hidden state": failed(_ERROR, "loss.backward()", sources={"train.py": _LOOP}),
}

SILENT = {
    "near miss: a loss without a graph": failed(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "another error": failed("ValueError: too many values to unpack (expected 2)"),
}
