"""Squared distances of the rows of a tensor to each other, which are zero on the diagonal."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.values import Known, Value, depends_on
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import Operation, operation_of

ZERO_AT_ZERO = frozenset({"relu", "abs"})
CLAMPS = frozenset({"clamp", "clamp_min", "clip", "maximum", "max"})


def is_square(operation: Operation | None) -> bool:
    """Tell whether an operation squares: `x ** 2`, `x.square()`, `x * x`."""
    if operation is None or not operation.operands:
        return False
    if operation.name == "square":
        return True
    if operation.name == "mul" and len(operation.operands) == 2:
        return operation.operands[0] is operation.operands[1]
    return operation.name == "pow" and number_of(operation.operands[-1]) == 2


def is_sum_of_squares(operation: Operation | None) -> bool:
    """Tell whether an operation is a sum or mean of squares."""
    if operation is None or operation.name not in ("sum", "mean") or not operation.operands:
        return False
    return is_square(operation_of(operation.operands[0]))


def is_self_distance(value: Value) -> bool:
    """Tell whether a value holds the squared distances of a tensor's rows to each other.

    Written out, `((x[:, None] - x[None]) ** 2).sum(-1)`, or multiplied out, `a + b - 2 * x @ x.T`.
    """
    value = _unclamped(value)
    operation = operation_of(value)
    if is_sum_of_squares(operation) and operation is not None:
        square = operation_of(operation.operands[0])
        difference = None if square is None else _unweighted(square.operands[0])
        return difference is not None and difference.name == "sub" and _are_one(difference)
    terms = list(_terms(value))
    products = [p for sign, v in terms if sign < 0 and (p := _own_product(v)) is not None]
    rest = [v for sign, v in terms if sign > 0]
    is_whole = len(products) == 1 and len(terms) == 3 and len(rest) == 2
    return is_whole and all(depends_on(v, products[0]) for v in rest)


def _unclamped(value: Value) -> Value:
    """Return what is held at zero or above: that leaves a zero where it is."""
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return value
    bound = operation.settings.get("min", next(iter(operation.operands[1:]), None))
    is_clamp = operation.name in CLAMPS and number_of(bound) == 0
    is_alike = operation.name in ZERO_AT_ZERO or is_clamp
    return operation.operands[0] if is_alike else value


def _unweighted(value: Value, depth: int = 6) -> Operation | None:
    """Return what a value is a multiple of: a weight leaves a zero where it is."""
    operation = operation_of(value)
    if operation is None or depth == 0 or operation.name not in ("mul", "div"):
        return operation
    first, *rest = operation.operands
    inner = [operation, _unweighted(first, depth - 1)]
    if operation.name == "mul":
        inner += [_unweighted(v, depth - 1) for v in rest]
    return next((o for o in inner if o is not None and o.name == "sub"), operation)


def _are_one(operation: Operation) -> bool:
    """Tell whether both operands have the numbers of one tensor, put differently."""
    if len(operation.operands) != 2:
        return False
    first, second = (list(same_numbers(v)) for v in operation.operands)
    is_one = len(first) == len(second) == 1 and first[0] is second[0]
    return is_one and not isinstance(first[0], Known)


def _terms(value: Value, sign: int = 1, depth: int = 4) -> Iterator[tuple[int, Value]]:
    """Yield what is added and subtracted in a value, with its sign."""
    operation = operation_of(value)
    is_sum = operation is not None and operation.name in ("add", "sub")
    if operation is None or not is_sum or len(operation.operands) != 2 or depth == 0:
        yield sign, value
        return
    first, second = operation.operands
    yield from _terms(first, sign, depth - 1)
    yield from _terms(second, sign if operation.name == "add" else -sign, depth - 1)


def _own_product(value: Value) -> Value | None:
    """Return the tensor that `2 * x @ x.T` multiplies with itself; None where it is none."""
    product = operation_of(_unscaled(value))
    if product is None or product.name not in ("matmul", "mm") or len(product.operands) != 2:
        return None
    sides = [list(same_numbers(_unscaled(v))) for v in product.operands]
    is_one = all(len(s) == 1 for s in sides) and sides[0][0] is sides[1][0]
    return sides[0][0] if is_one else None


def _unscaled(value: Value) -> Value:
    """Return a value without a number that it is multiplied with."""
    operation = operation_of(value)
    if operation is None or operation.name != "mul" or len(operation.operands) != 2:
        return value
    rest = [v for v in operation.operands if number_of(v) is None]
    return rest[0] if len(rest) == 1 else value
