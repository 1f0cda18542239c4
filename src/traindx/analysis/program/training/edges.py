"""Operations whose derivative does not exist at the edge of their domain, such as sqrt at 0."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Known, Value, constant
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.program import Program

EDGED = (
    "sqrt", "rsqrt", "norm", "vector_norm", "acos", "arccos", "asin", "arcsin", "atan2", "dist",
    "cdist", "std", "var", "pow", "where",
)  # fmt: skip
KEEPS_AWAY = frozenset({"clamp", "clamp_min", "clip", "max", "maximum", "clamp_", "clip_"})
SUMS = frozenset({"add", "+", "__add__"})
DEEPEST = 3  # operations between a guard and what it guards


def edged_operations(program: Program) -> Iterator[ProgramEvent]:
    """Yield the calls of such operations that nothing keeps away from the edge, each place once."""
    found = (
        c.event
        for c in program.results(*EDGED)
        if not _is_whole_power(c.operation) and not _is_guarded(c.operation)
    )
    yield from program.once(found)


def _is_whole_power(operation: Operation) -> bool:
    """Tell whether it is a square or another power that is smooth everywhere."""
    exponent = constant(operation.operands[1]) if len(operation.operands) > 1 else None
    is_whole = isinstance(exponent, (int, float)) and exponent >= 1 and exponent == int(exponent)
    return operation.name == "pow" and is_whole


def _is_guarded(operation: Operation) -> bool:
    return any(_keeps_away(value, DEEPEST) for value in operation.operands)


def _keeps_away(value: Value, depth: int) -> bool:
    operation = operation_of(value)
    if operation is None or not depth:
        return False
    if operation.name in KEEPS_AWAY:
        return True
    if operation.name in SUMS and any(_is_small(v) for v in operation.operands):
        return True
    return any(_keeps_away(v, depth - 1) for v in operation.operands[:2])


def _is_small(value: Value) -> bool:
    number = constant(value)
    is_eps = any("eps" in name.lower() for name in value.names)
    return is_eps or (isinstance(value, Known) and isinstance(number, float) and 0 < number < 0.1)
