"""Operations on two tensors: broadcasting, matrix products, einsum, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes.sizes import Dim, is_surely_different
from traindx.analysis.program.shapes.values import UNKNOWN, Mismatch, Shape, ShapedTensor, Value
from traindx.analysis.program.shapes.windows import Symbols

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.functions import Arguments


def broadcast(left: Value, right: Value, symbols: Symbols) -> Value:
    """Combine two values elementwise."""
    if not isinstance(left, ShapedTensor) or not isinstance(right, ShapedTensor):
        return _with_other(left, right)
    a, b = left.shape.sizes, right.shape.sizes
    is_open = left.shape.is_open or right.shape.is_open
    count = min(len(a), len(b)) if is_open else max(len(a), len(b))
    sizes: list[Dim] = []
    for back in range(1, count + 1):
        first = a[-back] if back <= len(a) else 1
        second = b[-back] if back <= len(b) else 1
        sizes.insert(0, _matched(first, second, (left, right), count - back, symbols))
    return ShapedTensor(Shape(tuple(sizes), is_open))


def _with_other(left: Value, right: Value) -> Value:
    """A tensor and a number keep the tensor's shape; with an unknown value nothing is known."""
    tensor, other = (left, right) if isinstance(left, ShapedTensor) else (right, left)
    if not isinstance(tensor, ShapedTensor):
        return UNKNOWN
    return ShapedTensor() if other is UNKNOWN else ShapedTensor(tensor.shape)


def _matched(
    first: Dim, second: Dim, pair: tuple[ShapedTensor, ShapedTensor], at: int, symbols: Symbols
) -> Dim:
    if second in (first, 1):
        return first
    if first == 1:
        return second
    if is_surely_different(first, second):
        text = (
            f"{pair[0].shape} and {pair[1].shape} do not fit: {first} and {second} meet in "
            f"dimension {at}"
        )
        raise Mismatch("broadcast", first, second, text)
    return first if isinstance(first, int) else second if isinstance(second, int) else symbols.new()


def multiplied(left: ShapedTensor, right: ShapedTensor, symbols: Symbols) -> ShapedTensor:
    """Apply a matrix product."""
    a, b = left.shape.sizes, right.shape.sizes
    if left.shape.is_open or right.shape.is_open or not a or not b:
        return ShapedTensor(Shape((b[-1],), True)) if len(b) >= 2 else ShapedTensor()
    inner = b[-2] if len(b) > 1 else b[-1]
    if is_surely_different(a[-1], inner):
        text = f"{left.shape} @ {right.shape}: the inner sizes {a[-1]} and {inner} differ"
        raise Mismatch("matmul", a[-1], inner, text)
    lead = broadcast(ShapedTensor(Shape(a[:-2])), ShapedTensor(Shape(b[:-2])), symbols)
    outer = lead.shape.sizes if isinstance(lead, ShapedTensor) else ()
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return ShapedTensor(Shape((*outer, *rows, *columns)))


def summed(args: Sequence[Value], symbols: Symbols) -> Value:
    """Apply einsum with letters; an ellipsis is not followed."""
    formula = args[0] if args else None
    operands = args[1] if len(args) == 2 and isinstance(args[1], tuple) else tuple(args[1:])
    if not isinstance(formula, str) or "." in formula or "->" not in formula:
        return ShapedTensor()
    inputs, _, output = formula.replace(" ", "").partition("->")
    sizes: dict[str, Dim] = {}
    letters = inputs.split(",")
    if len(letters) != len(operands):
        return ShapedTensor()
    for names, operand in zip(letters, operands, strict=True):
        if not isinstance(operand, ShapedTensor) or operand.shape.is_open:
            continue
        _name_sizes(formula, names, operand, sizes)
    return ShapedTensor(Shape(tuple(sizes[n] if n in sizes else symbols.new() for n in output)))


def _name_sizes(formula: str, names: str, operand: ShapedTensor, sizes: dict[str, Dim]) -> None:
    if len(names) != len(operand.shape.sizes):
        text = f"einsum '{formula}' names {len(names)} dimensions of {operand.shape}"
        raise Mismatch("einsum", f"{len(names)}D", f"{len(operand.shape.sizes)}D", text)
    for name, size in zip(names, operand.shape.sizes, strict=True):
        known = sizes.setdefault(name, size)
        if size != 1 and known != 1 and is_surely_different(known, size):
            text = f"einsum '{formula}': {name} is {known} and {size}"
            raise Mismatch("einsum", known, size, text)


def attended(given: Arguments, symbols: Symbols) -> Value:
    """Apply scaled_dot_product_attention."""
    query, key, value = given.tensor(0, "query"), given.tensor(1, "key"), given.tensor(2, "value")
    if query.shape.is_open or value.shape.is_open or not value.shape.sizes:
        return ShapedTensor()
    sizes = key.shape.sizes
    if sizes and is_surely_different(sizes[-1], query.shape.sizes[-1]):
        text = f"query {query.shape} and key {key.shape} have different widths"
        raise Mismatch("matmul", query.shape.sizes[-1], sizes[-1], text)
    return ShapedTensor(Shape((*query.shape.sizes[:-1], value.shape.sizes[-1])))
