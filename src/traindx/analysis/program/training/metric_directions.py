"""Whether a number that a program watches is a loss, which should fall, or a score."""

from __future__ import annotations

from enum import Enum

from traindx.analysis.program.execution.values import Known, Result, Value
from traindx.analysis.program.training.gradients import DETACHES
from traindx.analysis.program.training.kinds import Kind, made_kind
from traindx.analysis.program.training.operations import LOSSES, operation_of


class Metric(Enum):
    """What an improvement of a number looks like."""

    LOSS = "a loss"
    SCORE = "a score"


TURNS = frozenset({"sub", "neg", "ne", "logical_not", "exp", "log"})  # that may turn it round
PASSES = frozenset(
    {"add", "mul", "div", "sum", "mean", "float", "to", "cpu", "builtins.float", "builtins.sum",
     "numpy.mean", "floordiv", "getitem", "builtins.len", "stack", "double", "all", *DETACHES}
)  # fmt: skip
MOST = 300


def metric_of(value: Value) -> Metric | None:
    """Return what a number is made of: losses, or predictions that are right; None if unknown."""
    found: set[Metric] = set()
    pending, seen = [value], {id(value)}
    while pending and len(seen) < MOST:
        item = pending.pop()
        if isinstance(item, Known):
            continue
        operation = operation_of(item)
        name = "" if operation is None else operation.name
        if name in LOSSES or _is_loss(item):
            found.add(Metric.LOSS)
            continue
        if name == "eq":
            found.add(Metric.SCORE)
            continue
        if name in TURNS or (name and name not in PASSES and isinstance(item, Result)):
            if name in ("size", "numel", "shape", "builtins.len"):
                continue
            return None
        for below in item.inputs if name != "builtins.len" else ():
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return found.pop() if len(found) == 1 else None


def _is_loss(value: Value) -> bool:
    """Tell whether the call of a loss made a value."""
    maker = value.receiver if isinstance(value, Result) and value.maker == "()" else None
    kind = None if maker is None else made_kind(maker)
    return kind is not None and kind.kind is Kind.LOSS
