"""Subscripts: `x[:, -1]`, `self.layers[i]`, `x.shape[0]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes import calls, iteration, rearrangement
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.shapes.values import (
    LISTS,
    UNKNOWN,
    CallFrame,
    Mismatch,
    Ref,
    Shape,
    ShapedTensor,
    SizesOf,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine


def subscript(m: ShapeMachine, node: ast.Subscript, frame: CallFrame) -> Value:
    """Return what a subscript selects."""
    owner = m.evaluate(node.value, frame)
    if isinstance(owner, ShapedTensor):
        try:
            found = _selected(m, owner, node.slice, frame)
        except Mismatch as mismatch:
            raise m.conflict(mismatch, node, frame, "index") from None
        m.record(node, frame, "index", (owner,), found)
        return found
    if isinstance(owner, SizesOf):
        return _sizes(m, owner, node.slice, frame)
    if isinstance(node.slice, ast.Slice):
        return _stretch(m, owner, node.slice, frame)
    return _item(m, owner, m.evaluate(node.slice, frame))


def _item(m: ShapeMachine, owner: Value, key: Value) -> Value:
    if isinstance(owner, Ref):
        record = m.memory.read(owner)
        inner = record.fields.get("__children__")
        if record.kind == "object" and isinstance(inner, Ref):
            return _item(m, inner, key)
        if record.kind in LISTS and isinstance(key, int) and key < 0:
            key += len(record.fields)
        hashable = isinstance(key, (str, int, tuple))
        return record.fields.get(key, UNKNOWN) if hashable else UNKNOWN
    items = iteration.items_of(m, owner)
    if items is not None and isinstance(key, int) and -len(items) <= key < len(items):
        return items[key]
    return UNKNOWN


def _bounds(m: ShapeMachine, node: ast.Slice, frame: CallFrame) -> tuple[Value, Value, Value]:
    parts = (node.lower, node.upper, node.step)
    first, last, step = (None if p is None else m.evaluate(p, frame) for p in parts)
    return first, last, step


def _slice(bounds: tuple[Value, Value, Value]) -> slice | None:
    """Return bounds as a slice, where each is a number or left out."""
    known = [b for b in bounds if b is None or isinstance(b, int)]
    return slice(*known) if len(known) == 3 and known[2] != 0 else None


def _stretch(m: ShapeMachine, owner: Value, node: ast.Slice, frame: CallFrame) -> Value:
    items, chosen_by = iteration.items_of(m, owner), _slice(_bounds(m, node, frame))
    if items is None or chosen_by is None:
        return UNKNOWN
    chosen = items[chosen_by]
    if isinstance(owner, tuple):
        return tuple(chosen)
    kind = m.memory.read(owner).kind if isinstance(owner, Ref) else "list"
    return m.memory.new_list(chosen, kind if kind in LISTS else "list")


def _sizes(m: ShapeMachine, owner: SizesOf, node: ast.expr, frame: CallFrame) -> Value:
    shape = owner.tensor.shape
    if isinstance(node, ast.Slice):
        chosen_by = _slice(_bounds(m, node, frame))
        if chosen_by is None:
            return UNKNOWN
        first = chosen_by.start
        is_tail = isinstance(first, int) and -len(shape.sizes) <= first < 0
        if shape.is_open and not (is_tail and chosen_by.stop is None):
            return UNKNOWN
        return shape.sizes[chosen_by]
    key = m.evaluate(node, frame)
    return calls.size_of(m, owner.tensor, key, node, frame)


def _selected(
    m: ShapeMachine, tensor: ShapedTensor, node: ast.expr, frame: CallFrame
) -> ShapedTensor:
    parts = list(node.elts) if isinstance(node, ast.Tuple) else [node]
    keys: list[Value] = [p if isinstance(p, ast.Slice) else m.evaluate(p, frame) for p in parts]
    if tensor.shape.is_open:
        return ShapedTensor()
    plain = all(isinstance(k, ast.Slice) or k is None or k is ... or is_dim(k) for k in keys)
    if not plain:
        return _gathered(m, tensor, keys)
    return _sliced(m, tensor, keys, frame)


def _gathered(m: ShapeMachine, tensor: ShapedTensor, keys: list[Value]) -> ShapedTensor:
    """Index with one tensor or list of numbers in the first place; masks are not followed."""
    if len(keys) == 1 and isinstance(keys[0], Ref):
        items = m.memory.items(keys[0])
        if items is not None and all(is_dim(i) for i in items):
            return ShapedTensor(Shape((len(items), *tensor.shape.sizes[1:])))
    return ShapedTensor()


def _sliced(
    m: ShapeMachine, tensor: ShapedTensor, keys: list[Value], frame: CallFrame
) -> ShapedTensor:
    sizes = tensor.shape.sizes
    used = sum(1 for k in keys if k is not None and k is not ...)
    if used > len(sizes):
        text = f"{used} indices for the {len(sizes)} dimensions of {tensor.shape}"
        raise Mismatch("dimension", f"at most {len(sizes)} indices", used, text)
    if ... not in [k for k in keys if not isinstance(k, ShapedTensor)]:
        keys = [*keys, ...]
    made: list[Dim] = []
    at = 0
    for key in keys:
        if key is None:
            made.append(1)
        elif key is ...:
            skipped = len(sizes) - used
            made.extend(sizes[at : at + skipped])
            at += skipped
        elif isinstance(key, ast.Slice):
            made.append(rearrangement.cut(sizes[at], *_bounds(m, key, frame), m.symbols))
            at += 1
        else:
            at += 1
    return ShapedTensor(Shape(tuple(made)))
