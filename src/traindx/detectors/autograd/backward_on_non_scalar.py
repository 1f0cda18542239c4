from traindx.analysis.errors.graph_messages import BACKWARD_OF_MANY_VALUES
from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.written_calls import unreduced_loss
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """Backward is called on a loss that is not one number.

    ## What it detects
    "grad can be implicitly created only for scalar outputs": a loss with one value per example, as
    `reduction="none"` gives, or one per device under DataParallel.

    ## Why it matters
    Several values have no single gradient; how they are to be weighed has to be said.

    ## What to do
    Average over the batch: `loss.mean().backward()`, after any weighting.

    ## When it is wrong
    It is not: the message says it all. If the sum is meant, the learning rate has to shrink.
    """
    yield from findings(
        run, BACKWARD_OF_MANY_VALUES, blame=lambda known: unreduced_loss(run, known.failure)
    )


_ERROR = "RuntimeError: grad can be implicitly created only for scalar outputs"
_SOURCE = """
import torch.nn as nn
criterion = nn.CrossEntropyLoss(reduction="none")
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
"""

FIRES = {
    "the message alone": failed(_ERROR, "loss.backward()"),
    "no reduction": failed(_ERROR, "loss.backward()", sources={"train.py": _SOURCE}),
}

SILENT = {
    "near miss: no graph at all": failed(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
