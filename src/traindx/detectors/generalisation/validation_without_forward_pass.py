"""A validation loss that is computed without the model."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Value, depends_on
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.kinds import Kind, names_of, words_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import Loop
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

# words of the names of outputs, and of functions out of sight that may run a model
OUTPUT = frozenset(
    {"out", "output", "outputs", "pred", "preds", "prediction", "predictions", "logit", "logits",
     "score", "scores", "prob", "probs", "recon", "hat", "forward", "infer", "inference", "predict",
     "run", "step", "model", "net"}
)  # fmt: skip


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """A loop evaluates a model and compares the targets with the inputs instead of the outputs.

    ## What it detects
    A function that puts its model into evaluation mode and computes a loss in a loop over batches,
    on two parts of one batch, while the model is neither called nor handed to anything in that
    loop and has had no part in what the loop goes over.

    ## Why it matters
    The number says nothing about the model: it is the same after every epoch, and early stopping
    and the best checkpoint are chosen by it.

    ## What to do
    Run the model on the inputs and give its outputs to the loss.

    ## When it is wrong
    A baseline that scores the inputs on purpose has no model to put into evaluation mode. Outputs
    that were gathered before and are scored in a loop of their own are left alone, as are a loss
    that was made with the model, and values that are named as outputs.
    """
    for story in program_of(run).stories:
        seen: set[object] = set()
        modes = story.does(Do.EVAL_MODE)
        for event in story.events if modes else ():
            if not event.loops or event.node in seen or not _is_loss(story, event):
                continue
            loop = Loop(story, event.loops[-1], is_apart=True)
            own = [d for d in modes if d.event.function is loop.function is not None]
            if not own or loop.does(Do.FORWARD) or not _is_of_batch(event):
                continue
            models = [d.subject for d in own if d.subject is not None]
            if not any(_has_part(loop, event, model) for model in models):
                seen.add(event.node)
                yield _finding(loop, event, own[0])


def _is_loss(story: Story, event: ProgramEvent) -> bool:
    operation = operation_of(event.result)
    is_known = operation is not None and operation.name in LOSSES
    called = event.name == "()" and story.kind_of(event.receiver).kind is Kind.LOSS
    return (is_known or called) and len(event.args) == 2 and not event.is_own


def _is_of_batch(event: ProgramEvent) -> bool:
    """Tell whether a loss compares two parts of one batch that are not named as outputs."""
    parts = [a for a in event.args if isinstance(a, Part)]
    if len(parts) != 2 or parts[0].of is not parts[1].of or parts[0].key == parts[1].key:
        return False
    batch = parts[0].of
    is_drawn = isinstance(batch, Result) and batch.maker in ("builtins.next", "()")
    named = [n for v in parts for n in names_of(v)]
    if isinstance(batch, Result) and batch.receiver is not None:
        named += names_of(batch.receiver)
    return is_drawn and not any(words_of(n) & OUTPUT for n in named)


def _has_part(loop: Loop, loss: ProgramEvent, model: Value) -> bool:
    """Tell whether a model had its part in what a loss compares, or may run in the loop unseen."""
    compared = [*loss.args, *([] if loss.receiver is None else [loss.receiver])]
    if any(depends_on(value, model) for value in compared):
        return True
    given = (v for e in loop.events for v in (e.receiver, *e.args, *e.kwargs.values()))
    return any(v is not None and depends_on(v, model) for v in given)


def _finding(loop: Loop, loss: ProgramEvent, mode: Deed) -> Finding:
    names = [next(iter(names_of(a)[::-1]), "a part of the batch") for a in loss.args]
    return finding(
        f"The loss in `{loss.function_name}` compares `{names[0]}` with `{names[1]}`, both data",
        "metric-bug",
        loss,
        cite(loss, "neither is an output of the model"),
        cite(loop.run.site, f"{mode.text} does not run in this loop"),
        is_symptom=True,
    )


_LOOP = """
import torch

@torch.no_grad()
def validate(model, criterion, loader, prepare):
    model.eval()
    total = 0.0
    {made}
    for batch in loader:
        inputs, targets = prepare(batch)
        {line}
        total += loss.item()
    return total / len(loader)
"""


def _loop(line: str, made: str = "pass") -> Run:
    return make_run(sources={"train.py": _LOOP.format(line=line, made=made)})


_GATHERED = """
import torch

@torch.no_grad()
def validate(model, criterion, loader):
    model.eval()
    found, total = [], 0.0
    for x, y in loader:
        found.append((model(x), y))
    for a, b in found:
        total += criterion(a, b).item()
    return total
"""


def _gathered() -> Run:
    return make_run(sources={"train.py": _GATHERED})


_OWN_CLASS = """
import torch
import torch.nn.functional as F

class Evaluator:
    def __init__(self, net, batches):
        self.net, self.batches = net, batches

    def score(self):
        self.net.eval()
        losses = []
        with torch.no_grad():
            for noisy, clean in self.batches:
                losses.append(F.mse_loss(noisy, clean).item())
        return sum(losses) / len(losses)
"""

FIRES = {
    "inputs against targets": _loop("loss = criterion(inputs, targets)"),
    "noisy against clean, in a class": make_run(sources={"score.py": _OWN_CLASS}),
}

SILENT = {
    "outputs against targets": _loop("loss = criterion(model(inputs), targets)"),
    "near miss: the outputs under the name of the inputs": _loop(
        "inputs = model(inputs); loss = criterion(inputs, targets)"
    ),
    "near miss: outputs that were gathered before": _gathered(),
    "near miss: a step that may run the model": _loop(
        "inputs, targets = run_step(batch); loss = criterion(inputs, targets)"
    ),
    "near miss: a loss that holds the model": _loop(
        "loss = criterion(inputs, targets)", made="criterion = Residual(model)"
    ),
    "near miss: the model is handed to the loss": _loop("loss = criterion(inputs, targets, model)"),
}
