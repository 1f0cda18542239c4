from dataclasses import replace

from traindx.analysis.errors.graph_blame import why_no_graph
from traindx.analysis.errors.graph_messages import CHECKPOINTED_WITHOUT_INPUT, LOSS_WITHOUT_GRAPH
from traindx.analysis.errors.messages import causes_in, events_saying, finding, known_error
from traindx.examples import Event, failed, script
from traindx.registry import Findings, Run, Strength, cite_event, detector

HOW = (
    "; the inputs of gradient checkpointing do not require grad (frozen embeddings): call "
    "`model.enable_input_require_grads()`, or checkpoint with `use_reentrant=False`"
)
CHECKPOINTED = {"frozen-parameters": Strength.STRONG, "no-grad-training": Strength.WEAK}


@detector(needs=("failure",), suggests=causes_in(LOSS_WITHOUT_GRAPH))
def check(run: Run) -> Findings:
    """Backward is called on a value that depends on no parameter.

    ## What it detects
    "element 0 of tensors does not require grad and does not have a grad_fn". With the source, what
    cut the graph: `.item()`, `.detach()`, `torch.tensor(…)` around the loss, argmax or a
    comparison, `no_grad`, gradients that are switched off for good, or a model whose parameters are
    all frozen.

    ## Why it matters
    Nothing can learn; and `loss.requires_grad_()`, an often-read advice, makes the error go away
    while still nothing learns.

    ## What to do
    Take out what cuts the graph between the model's output and the loss.

    ## When it is wrong
    Without the source the four reasons look the same, and are listed side by side.
    """
    known = known_error(run, LOSS_WITHOUT_GRAPH)
    if known is None:
        return
    cause, culprit = why_no_graph(run, known.failure)
    warnings = events_saying(run, CHECKPOINTED_WITHOUT_INPUT)
    if culprit is None and warnings:
        notes = [cite_event(warnings[0])]
        yield finding(known, known.claim() + HOW, suggests=CHECKPOINTED, notes=notes)
    else:
        yield finding(known, cause=cause, culprit=culprit)


_ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
_LOOP = """
for x, y in loader:
    loss = {loss}
    loss.backward()
    optimizer.step()
"""

_MODULE = """
import torch
import lightning
class Lit(lightning.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        with torch.no_grad():
            out = self.net(x)
        return torch.nn.functional.cross_entropy(out, y)
trainer.fit(model)
"""


def _run(loss: str) -> Run:
    text = _LOOP.format(loss=loss)
    return failed(_ERROR, "loss.backward()", sources={"train.py": text})


FIRES = {
    "the message alone": failed(_ERROR, "loss.backward()"),
    "checkpointing of frozen inputs": replace(
        failed(_ERROR, "trainer.train()"),
        events=(
            Event(
                "warning",
                "UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
                "train.log",
                "line 80",
            ),
        ),
    ),
    "a new tensor": _run("torch.tensor(criterion(model(x), y))"),
    "argmax": _run("criterion(model(x).argmax(1).float(), y)"),
    "gradients switched off": failed(
        _ERROR,
        "loss.backward()",
        sources={
            "train.py": "import torch\ntorch.set_grad_enabled(False)\n"
            + _LOOP.format(loss="criterion(model(x), y)")
        },
    ),
    "no_grad in a hook of a framework": failed(
        _ERROR, "trainer.fit(model)", sources={"train.py": _MODULE}
    ),
}

SILENT = {
    "near miss: a graph used twice": failed(
        "RuntimeError: Trying to backward through the graph a second time", "loss.backward()"
    ),
    "no error": script(_LOOP, loss="criterion(model(x), y)"),
}
