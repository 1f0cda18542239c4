"""Whether a value is true, and how two values compare, where that is certain."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from traindx.analysis.program.shapes.sizes import Dim, is_dim, is_surely_different
from traindx.analysis.program.shapes.values import (
    TRAINING,
    UNKNOWN,
    ClassRef,
    FunctionRef,
    Layer,
    Named,
    Ref,
    ShapedTensor,
    Value,
)

_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def of(value: Value) -> bool | None:
    """Return a value's truth; None where it is not known."""
    if value is None or isinstance(value, (bool, int, float, str, tuple)):
        return bool(value)
    if isinstance(value, (Layer, ClassRef, FunctionRef)):
        return True
    return None


def compared(op: ast.cmpop, left: Value, right: Value) -> Value:
    """Return the outcome of a comparison, or UNKNOWN."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _is_same(left, right)
        return UNKNOWN if same is None else same is isinstance(op, ast.Is)
    if is_dim(left) and is_dim(right):
        return _sizes_compared(op, left, right)
    if not _is_plain(left) or not _is_plain(right):
        return UNKNOWN
    try:
        return _plain_compared(op, left, right)
    except TypeError:
        return UNKNOWN


def _is_same(left: Value, right: Value) -> bool | None:
    for a, b in ((left, right), (right, left)):
        if a is None:
            if b is None:
                return True
            firm = (ShapedTensor, Layer, Ref, ClassRef, FunctionRef, Named, int, float, str, tuple)
            return False if isinstance(b, firm) else None
        if isinstance(a, bool) and isinstance(b, bool):
            return a is b
    return None


def _is_plain(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _sizes_compared(op: ast.cmpop, left: Dim, right: Dim) -> Value:
    if isinstance(op, (ast.Eq, ast.NotEq)):
        if left == right:
            return isinstance(op, ast.Eq)
        return isinstance(op, ast.NotEq) if is_surely_different(left, right) else UNKNOWN
    difference = left - right
    compare = _COMPARISONS.get(type(op))
    if not isinstance(difference, int) or compare is None:
        return UNKNOWN
    return compare(difference, 0)


def _plain_compared(op: ast.cmpop, left: Value, right: Value) -> Value:
    if isinstance(op, ast.Eq):
        return left == right
    if isinstance(op, ast.NotEq):
        return left != right
    if isinstance(op, (ast.In, ast.NotIn)):
        inside = isinstance(right, (tuple, str)) and left in right
        return inside is isinstance(op, ast.In)
    compare = _COMPARISONS.get(type(op))
    return UNKNOWN if compare is None else compare(left, right)  # type: ignore[arg-type]


def negated(value: Value) -> Value:
    """Return `not value`."""
    if value is TRAINING:
        return TRAINING
    known = of(value)
    return UNKNOWN if known is None else not known
