"""How many classes a loss sees in the outputs that it is given."""

from __future__ import annotations

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Items, Value, constant
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Program

SAME_WIDTH = frozenset(
    {"relu", "sigmoid", "tanh", "softmax", "log_softmax", "dropout", "detach", "float", "double",
     "cpu", "cuda", "to", "contiguous", "clone", "exp", "log"}
)  # fmt: skip
DEEPEST = 8


def class_count(outputs: Value | None, depth: int = DEEPEST) -> int | None:
    """Return the size of the dimension of the classes; None where the source does not show it."""
    operation = operation_of(outputs)
    if operation is None or not depth:
        return None
    if operation.name == "linear":
        return _whole(operation.settings.get("out_features"))
    if operation.name in SAME_WIDTH and operation.operands:
        return class_count(operation.operands[0], depth - 1)
    if operation.name in ("reshape", "view") and len(operation.operands) > 1:
        last = operation.operands[-1]
        sizes = list(last.fields.values()) if isinstance(last, Items) else [last]
        return _whole(sizes[-1]) if sizes else None
    if operation.name == "unsqueeze":
        dims = [*operation.operands[1:], *operation.settings.values()]
        return 1 if dims and constant(dims[0]) in (1, -1) else None
    return None


def _whole(size: Value | None) -> int | None:
    found = constant(size)
    is_size = isinstance(found, int) and not isinstance(found, bool) and found > 0
    return found if is_size and isinstance(found, int) else None


def softmax_over_one(program: Program) -> ProgramEvent | None:
    """Return where a softmax is taken over one output, which is always 1."""
    for computed in program.results("cross_entropy", "log_softmax", "softmax"):
        operands = computed.operation.operands
        if operands and class_count(operands[0]) == 1:
            return computed.event
    return None
