"""An intersection is divided by both areas together: neither IoU nor Dice."""

from traindx.analysis.program.execution.values import (
    Choice,
    Known,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.counters import counter_of, counters, quotients
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

COUNTS = frozenset({"sum", "bincount", "count_nonzero"})
OVERLAPS = frozenset({"mul", "and", "and_", "logical_and", "bitwise_and", "eq", "minimum"})
DIAGONALS = frozenset({"diag", "diagonal", "numpy.diag", "numpy.diagonal"})
BOUNDS = frozenset({"clamp", "clamp_min", "maximum", "item", "float", "double", "cpu", "getitem",
                    "unsqueeze", "squeeze", "view", "to"})  # fmt: skip
MOST = 400  # values that a number is followed back through


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """An overlap of predictions and labels is divided by the sum of both areas.

    ## What it detects
    A count of where predictions and labels agree, divided by the count of the predictions plus that
    of the labels, or the diagonal of a confusion matrix by the sums of its rows and columns,
    without taking the overlap off the sum (IoU) and without doubling it (Dice).

    ## Why it matters
    The value of a perfect prediction is 0.5. Models are compared and stopped by a number that means
    nothing.

    ## What to do
    IoU: `overlap / (predicted + labelled - overlap)`. Dice: `2 * overlap / (predicted + labelled)`.

    ## When it is wrong
    Where the quotient is doubled later, nothing is said.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        known = counters(story)
        for event, above, below in quotients(story):
            if counter_of(_plain(below)[0], known) is not None:
                continue  # one count that grows
            if event.node in seen or event.result is None:
                continue
            is_half = _is_of_matrix(above, below) or (
                _is_count(above) and _is_of_both(above, below)
            )
            if is_half and not _is_doubled(story, event.result):
                seen.add(event.node)
                yield finding(
                    "The overlap is divided by the sum of both areas: at best 0.5, no IoU",
                    "metric-bug",
                    event,
                    cite(event, f"`{source_text(event)}`"),
                    is_symptom=True,
                )


def _plain(value: Value) -> tuple[Value, Operation | None]:
    """Look through bounds, small constants and what only reshapes."""
    operation = operation_of(value)
    while operation is not None and operation.operands:
        rest = operation.operands[1:]
        is_bound = operation.name in BOUNDS
        is_small = operation.name == "add" and len(rest) == 1 and isinstance(rest[0], Known)
        if not is_bound and not is_small:
            break
        value = operation.operands[0]
        operation = operation_of(value)
    return value, operation


def _is_count(value: Value, depth: int = 6) -> bool:
    """Tell whether a number counts elements: a sum, or one that grows by sums."""
    value, operation = _plain(value)
    if isinstance(value, Choice):
        return all(_is_count(o, depth - 1) for o in value.options)
    if operation is None or depth == 0:
        return False
    if operation.name == "add":
        grows = operation_of(operation.operands[0])
        is_grown = grows is None or grows.name in ("add", "zeros") or not grows.operands
        return is_grown and _is_count(operation.operands[1], depth - 1)
    return operation.name in COUNTS


def _is_of_matrix(above: Value, below: Value) -> bool:
    """Tell whether the diagonal of a confusion matrix is divided by both of its sums."""
    diagonal, operation = _plain(above)[1], _plain(below)[1]
    if diagonal is None or operation is None or diagonal.name not in DIAGONALS:
        return False
    sums = [_plain(v)[1] for v in operation.operands]
    if operation.name != "add" or len(sums) != 2 or any(s is None or s.name != "sum" for s in sums):
        return False
    known = [s for s in sums if s is not None]
    axes = {constant(next(iter((*s.operands[1:], *s.settings.values())), None)) for s in known}
    is_one = all(is_same(s.operands[0], diagonal.operands[0]) for s in known)
    return is_one and axes in ({0, 1}, {0, -1}, {-2, -1})


def _is_of_both(above: Value, below: Value) -> bool:
    """Tell whether a count of an overlap is divided by the counts of its two sides."""
    operation = _plain(below)[1]
    if operation is None or operation.name != "add" or len(operation.operands) != 2:
        return False
    one, other = operation.operands
    if not (_is_count(one) and _is_count(other)):
        return False
    overlap = {id(v): v for v in origins(above, MOST) if not isinstance(v, Known)}
    first = {id(v) for v in origins(one, MOST)} & overlap.keys()
    second = {id(v) for v in origins(other, MOST)} & overlap.keys()
    if not first - second or not second - first:
        return False
    names = {o.name for v in overlap.values() if (o := operation_of(v)) is not None}
    return bool(names & OVERLAPS) and "sub" not in names


def _is_doubled(story: Story, value: Value, depth: int = 3) -> bool:
    for user in story.made_from(value):
        operation = operation_of(user)
        if operation is None:
            continue
        if operation.name == "mul" and any(constant(v) in (2, 2.0) for v in operation.operands):
            return True
        if depth and operation.name in (*BOUNDS, "mean", "sum") and _is_doubled(
            story, user, depth - 1
        ):  # fmt: skip
            return True
    return False


_METRIC = """
import torch

def overlap(model, loader):
    found = []
    for image, mask in loader:
        pred = model(image) > 0
        hit = (pred & mask).sum()
        found.append({value})
    return sum(found) / len(found)
"""


def _metric(value: str) -> Run:
    return make_run(sources={"metrics.py": _METRIC.format(value=value)})


_GROWN = """
import torch

class Score:
    def __init__(self, classes):
        self.hit = torch.zeros(classes)
        self.found = torch.zeros(classes)
        self.real = torch.zeros(classes)

    def add(self, pred, true):
        self.hit += torch.bincount(pred[pred == true].flatten())
        self.found += torch.bincount(pred.flatten())
        self.real += torch.bincount(true.flatten())

    def value(self):
        both = self.found + self.real{less}
        return self.hit / both.clamp(min=1)

score = Score(3)
for image, true in test_loader:
    score.add(model(image).argmax(1), true)
print(score.value())
"""


def _grown(less: str = "") -> Run:
    return make_run(sources={"score.py": _GROWN.format(less=less)})


_MATRIX = """
import numpy as np
import torch

def scores(model, loader, classes):
    matrix = np.zeros((classes, classes))
    for x, y in loader:
        guess = model(x).argmax(1)
        np.add.at(matrix, (y.numpy().ravel(), guess.numpy().ravel()), 1)
    hit = np.diag(matrix)
    return (hit / (matrix.sum(0) + matrix.sum(axis=1){less})).mean()
"""

FIRES = {
    "of a confusion matrix": make_run(sources={"metrics.py": _MATRIX.format(less="")}),
    "masks": _metric("hit / (pred.sum() + mask.sum() + 1e-6)"),
    "counts over a data set": _grown(),
}

SILENT = {
    "near miss: of a confusion matrix, less the overlap": make_run(
        sources={"metrics.py": _MATRIX.format(less=" - hit")}
    ),
    "the overlap is taken off": _metric("hit / (pred.sum() + mask.sum() - hit)"),
    "near miss: Dice": _metric("2 * hit / (pred.sum() + mask.sum())"),
    "near miss: Dice, doubled later": _metric("hit / (pred.sum() + mask.sum()) * 2"),
    "near miss: one count that grows": make_run(
        sources={
            "score.py": "n = total = 0\nfor x, y in test_loader:\n"
            "    n += ((model(x) == y) * (y != 0)).sum()\n    total += (y != 0).sum()\n"
            "print(n / total)\n"
        }
    ),
    "near miss: recall": _metric("hit / mask.sum()"),
    "near miss: an error over both": _metric("(pred - mask).sum() / (pred.sum() + mask.sum())"),
    "counts over a data set, the overlap taken off": _grown(" - self.hit"),
}
