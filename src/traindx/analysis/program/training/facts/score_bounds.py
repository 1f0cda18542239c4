"""Between which numbers the elements of a tensor lie, where what made it says so."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.contents import SAME_NUMBERS, same_numbers
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import Operation, operation_of

Bounds = tuple[float, float]
FIXED: dict[str, Bounds] = {
    "softmax": (0.0, 1.0), "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0), "cosine_similarity": (-1.0, 1.0), "normalize": (-1.0, 1.0),
    "rand": (0.0, 1.0), "rand_like": (0.0, 1.0),
}  # fmt: skip
DEEP = 30


def bounds_of(value: Value, depth: int = DEEP) -> Bounds | None:
    """Return the lowest and highest number that an element may be; None where it is not known."""
    number = number_of(value)
    if number is not None:
        return number, number
    operation = operation_of(value)
    if operation is None or not operation.operands or depth == 0:
        return None
    if operation.name in FIXED:
        return FIXED[operation.name]
    if operation.name in SAME_NUMBERS:
        return bounds_of(operation.operands[0], depth - 1)
    if operation.name == "matmul" and all(_has_unit_rows(v) for v in operation.operands[:2]):
        return -1.0, 1.0  # cosines
    if operation.name == "clamp":
        return _clamped(operation)
    found = [bounds_of(v, depth - 1) for v in operation.operands]
    known = [b for b in found if b is not None]
    return _computed(operation.name, known) if len(known) == len(found) else None


def _has_unit_rows(value: Value) -> bool:
    """Tell whether the rows of a matrix have length one, be it turned or not."""
    made = [operation_of(v) for v in same_numbers(value)]
    return bool(made) and all(o is not None and o.name == "normalize" for o in made)


def _clamped(operation: Operation) -> Bounds | None:
    given = [*operation.operands[1:], None, None]
    low = number_of(operation.settings.get("min", given[0]))
    high = number_of(operation.settings.get("max", given[1]))
    return None if low is None or high is None else (low, high)


def _computed(name: str, given: Sequence[Bounds]) -> Bounds | None:
    if name == "neg" and len(given) == 1:
        return -given[0][1], -given[0][0]
    if len(given) != 2:
        return None
    (a, b), (c, d) = given
    if name == "add":
        return a + c, b + d
    if name == "sub":
        return a - d, b - c
    is_quotient = name == "div" and c == d != 0
    if name == "mul" or is_quotient:
        ends = [x / c if is_quotient else x * y for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)
    return None
