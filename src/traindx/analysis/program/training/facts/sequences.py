"""Lists of unknown length, and values that are one of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindx.analysis.program.shapes import rearrangement
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.shapes.values import UNKNOWN, Shape, ShapedTensor
from traindx.analysis.program.shapes.windows import Symbols


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """An unknown number of values that are alike."""

    one: object


def either(values: Sequence[object], symbols: Symbols) -> object:
    """Return what is known of a value that is one of several."""
    first, *others = values
    for other in others:
        first = _one_of_two(first, other, symbols)
    return first


def _one_of_two(first: object, second: object, symbols: Symbols) -> object:
    if isinstance(first, ShapedTensor) and isinstance(second, ShapedTensor):
        return ShapedTensor(_common(first.shape, second.shape, symbols))
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        pairs = zip(first, second, strict=True)
        return tuple(_one_of_two(a, b, symbols) for a, b in pairs)
    if isinstance(first, Several) and isinstance(second, Several):
        return Several(_one_of_two(first.one, second.one, symbols))
    is_same = type(first) is type(second) and first == second
    if not is_same and _is_number(first) and _is_number(second):
        return math.nan  # some number, which has no dimensions
    return first if is_same else UNKNOWN


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _common(first: Shape, second: Shape, symbols: Symbols) -> Shape:
    if first.is_open or second.is_open or len(first.sizes) != len(second.sizes):
        count = min(len(first.sizes), len(second.sizes))
        pairs = zip(first.sizes[-count:], second.sizes[-count:], strict=True) if count else ()
        kept: list[Dim] = [a if a == b else symbols.new() for a, b in pairs]
        return Shape(tuple(kept), True)
    pairs = zip(first.sizes, second.sizes, strict=True)
    return Shape(tuple(a if a == b else symbols.new() for a, b in pairs))


def nested(value: object, symbols: Symbols) -> Shape | None:
    """Return the shape of the tensor that nested lists of numbers make; None if not known."""
    if isinstance(value, ShapedTensor):
        return None if value.shape.is_open else value.shape
    if isinstance(value, (int, float)) or is_dim(value):
        return Shape(())
    if isinstance(value, Several):
        inner = nested(value.one, symbols)
        return None if inner is None else Shape((symbols.new(), *inner.sizes))
    if isinstance(value, tuple) and value:
        inner = nested(value[0], symbols)
        return None if inner is None else Shape((len(value), *inner.sizes))
    return None


def joined(
    name: str, several: Several, args: Sequence[object], kwargs: Mapping[str, object],
    symbols: Symbols,
) -> object:  # fmt: skip
    """Join or stack an unknown number of tensors that are alike."""
    one = several.one
    if not isinstance(one, ShapedTensor) or one.shape.is_open:
        return ShapedTensor()
    dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    if name == "stack":
        made = rearrangement.unsqueezed(one, dim)
        at = rearrangement.position(dim, len(one.shape.sizes) + 1)
    else:
        made, at = one, rearrangement.position(dim, len(one.shape.sizes))
    return ShapedTensor() if at is None else rearrangement.with_size(made, at, symbols.new())
