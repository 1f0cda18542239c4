"""Tensors of sizes that do not fit meet: in a sum, a join, a view, a batch or a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root
from traindx.source.shapes.accounts import origin_of
from traindx.source.shapes.blame import Blame, culprit_of, find_blame, find_trace
from traindx.source.shapes.machine import Conflict, Step
from traindx.source.shapes.messages import SizeError, read
from traindx.source.shapes.other_frameworks import read_other
from traindx.source.shapes.sizes import Size
from traindx.source.shapes.tracing import Trace

ANY = re.compile("")
CAUSES = {"stack-channels": "channel-mismatch"}


@detector(
    needs=("failure",),
    suggests=("shape-mismatch", "channel-mismatch"),
)
def check(run: Run) -> Iterator[Finding]:
    """Tensors of sizes that do not fit meet in one operation.

    ## What it detects
    The errors of sums, joins, views, batches and losses: "The size of tensor a (10) must match the
    size of tensor b (5)", "shape '[32, 400]' is invalid for input of size 57600", "stack expects
    each tensor to be equal size", "Expected input batch_size (324) to match target batch_size (4)".
    Every number is explained; with the source, the line at which the size went wrong.

    ## Why it matters
    The error is raised where two sizes meet; the wrong one was made earlier.

    ## What to do
    Follow the size that the evidence names to the line that made it.

    ## When it is wrong
    Which of two sizes is the wrong one, the message does not say.
    """
    hit = match_root(run, ANY)
    said = hit[0].message if hit is not None else ""
    error = read(said) or read_other(said)
    if hit is None or error is None:
        return
    failure = hit[0]
    culprit, more = _culprit(run, failure, error)
    notes = [Evidence(error.hint, failure.artifact, failure.locator)] if error.hint else []
    cause = CAUSES.get(error.kind, "shape-mismatch")
    yield explain(run, failure, error.claim, shows=cause, culprit=culprit, notes=[*notes, *more])


def _culprit(run: Run, failure: Failure, error: SizeError) -> tuple[Culprit | None, list[Evidence]]:
    if error.kind == "batch":
        return _lost_batch(run, failure, error), []
    if error.kind not in ("broadcast", "concat", "view", "features", "rank"):
        return None, []
    blame = find_blame(project_of(run), failure, lambda c: _fits(error, c))
    if blame is None:
        return None, []
    account = origin_of(blame.trace, blame.conflict)
    place = f"line {blame.conflict.line}"
    told = [Evidence(t, blame.conflict.file, place) for t in (blame.conflict.text, account) if t]
    if blame.layer is None:
        return None, told
    is_repairable = error.kind == "features"
    says = f"{blame.name} is built here for {_wanted(blame)}"
    return culprit_of(blame, says, is_repairable=is_repairable), told


def _wanted(blame: Blame) -> str:
    expected = blame.conflict.expected
    return f"{expected} features" if isinstance(expected, int) else f"{expected} input"


def _fits(error: SizeError, conflict: Conflict) -> bool:
    if error.kind != conflict.kind:
        return False
    if error.kind == "view":
        return _elements(conflict.got, error)
    if error.kind == "rank":
        return conflict.got == f"{error.got}D"
    return {conflict.expected, conflict.got} == {error.expected, error.got}


def _elements(total: object, error: SizeError) -> bool:
    """Tell whether a number of elements is the one in the message, for some batch size."""
    if isinstance(total, Size) and error.got is not None:
        return len(total.terms) == 1 and error.got % total.terms[0][1] == 0
    return total == error.got


def _lost_batch(run: Run, failure: Failure, error: SizeError) -> Culprit | None:
    """The line at which samples and features were mixed up."""
    project, found = project_of(run), None
    followed = find_trace(
        project, failure, lambda t: _mixing(t, error) is not None, batch=error.expected
    )
    step = None if followed is None else _mixing(followed.trace, error)
    if followed is None or step is None:
        return None
    for module in project.modules:
        if module.path == step.file:
            found = module
    before, after = step.before[0], step.after[0]
    features = "·".join(str(s) for s in before.sizes[1:])
    says = (
        f"this turns {before} into {after}: each sample has {features} = {_count(before.sizes)} "
        f"features, and the {step.operation} keeps {after.sizes[-1]} of them per row"
    )
    node = None if found is None else _statement_at(found.tree, step.line)
    return None if found is None or node is None else Culprit(found, node, says)


def _mixing(trace: Trace, error: SizeError) -> Step | None:
    """The step that turns a batch of the right size into one of the size in the message."""
    for step in trace.steps:
        if step.operation in ("view", "reshape", "flatten") and step.before and step.after:
            first, last = step.before[0].sizes[:1], step.after[0].sizes[:1]
            if first == (error.expected,) and last == (error.got,):
                return step
    return None


def _count(sizes: tuple[object, ...]) -> int:
    total = 1
    for size in sizes[1:]:
        total *= size if isinstance(size, int) else 1
    return total


def _statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.stmt))
    return next((n for n in nodes if n.lineno == line), None)


_MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.fc = nn.Linear(400, 10)

    def forward(self, x):
        x = self.conv(x)
        x = x.view(-1, 400)
        return self.fc(x)
"""

FIRES = {
    "a sum": make_failed_run(
        "RuntimeError: The size of tensor a (10) must match the size of tensor b (5) at "
        "non-singleton dimension 1"
    ),
    "a join of odd sizes": make_failed_run(
        "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 32 but got "
        "size 31 for tensor number 1 in the list."
    ),
    "grey images among others": make_failed_run(
        "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry "
        "0 and [1, 224, 224] at entry 1"
    ),
    "a view that eats the batch": make_failed_run(
        "ValueError: Expected input batch_size (36) to match target batch_size (4).",
        "loss = criterion(model(x), y)",
        sources={"model.py": _MODEL},
    ),
    "an input that a layer of Keras is not built for": make_failed_run(
        'ValueError: Input 0 of layer "sequential" is incompatible with the layer: expected shape='
        "(None, 1, 4), found shape=(None, 1, 34)",
        "model.fit(x, y)",
    ),
    "a product of JAX": make_failed_run(
        "TypeError: dot_general requires contracting dimensions to have the same shape, got (1,) "
        "and (15,)."
    ),
    "a target without the last dimension": make_failed_run(
        "ValueError: Target size (torch.Size([64])) must be the same as input size "
        "(torch.Size([64, 1]))"
    ),
}

SILENT = {
    "near miss: an index": make_failed_run(
        "IndexError: index 10 is out of bounds for dimension 0 with size 10"
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory."),
}
