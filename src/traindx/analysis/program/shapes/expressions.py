"""Expressions: names, attributes, arithmetic, comprehensions, subscripts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.shapes import (
    iteration,
    names,
    products,
    statements,
    subscripts,
    truth,
)
from traindx.analysis.program.shapes.sizes import Dim, divided, is_dim
from traindx.analysis.program.shapes.values import (
    TRAINING,
    UNKNOWN,
    CallFrame,
    FunctionRef,
    Mismatch,
    Ref,
    ShapedTensor,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

_PLAIN: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_MAX_POWER = 64
_MAX_TEXT = 10_000


def evaluate(m: ShapeMachine, node: ast.expr, frame: CallFrame) -> Value:
    """Return the value of an expression, UNKNOWN where it cannot be told."""
    rule = _RULES.get(type(node))
    return UNKNOWN if rule is None else rule(m, node, frame)


def _constant(m: ShapeMachine, node: ast.Constant, frame: CallFrame) -> Value:
    return node.value if not isinstance(node.value, (complex, bytes)) else UNKNOWN


def _name(m: ShapeMachine, node: ast.Name, frame: CallFrame) -> Value:
    return names.resolve(m, node.id, frame)


def _attribute(m: ShapeMachine, node: ast.Attribute, frame: CallFrame) -> Value:
    owner = m.evaluate(node.value, frame)
    return names.attribute(m, owner, node, frame)


def _call(m: ShapeMachine, node: ast.Call, frame: CallFrame) -> Value:
    callee = m.evaluate(node.func, frame)
    args: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            items = iteration.items_of(m, m.evaluate(arg.value, frame))
            if items is None:
                return UNKNOWN
            args.extend(items)
        else:
            args.append(m.evaluate(arg, frame))
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = m.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
            continue
        pairs = iteration.pairs_of(m, value)
        if pairs is None:
            return UNKNOWN
        kwargs.update({str(k): v for k, v in pairs})
    return m.call(callee, args, kwargs, node, frame)


def _binary(m: ShapeMachine, node: ast.BinOp, frame: CallFrame) -> Value:
    left, right = m.evaluate(node.left, frame), m.evaluate(node.right, frame)
    if isinstance(left, ShapedTensor) or isinstance(right, ShapedTensor):
        return _tensor_binary(m, node, left, right, frame)
    if is_dim(left) and is_dim(right):
        return _sizes_combined(node.op, left, right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _plain(node.op, left, right)
    return _sequence_binary(m, node.op, left, right)


def _tensor_binary(
    m: ShapeMachine, node: ast.BinOp, left: Value, right: Value, frame: CallFrame
) -> Value:
    text = type(node.op).__name__
    try:
        if isinstance(node.op, ast.MatMult):
            if not isinstance(left, ShapedTensor) or not isinstance(right, ShapedTensor):
                return ShapedTensor()
            found: Value = products.multiplied(left, right, m.symbols)
        else:
            found = products.broadcast(left, right, m.symbols)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, text) from None
    m.record(node, frame, text, (left, right), found)
    return found


def _sizes_combined(op: ast.operator, left: Dim, right: Dim) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return _plain(op, left, right)
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.FloorDiv) and right != 0:
        return left // right
    exact = divided(left, right)
    if isinstance(op, ast.Div):
        return UNKNOWN if exact is None else exact
    if isinstance(op, ast.Mod):
        return UNKNOWN if exact is None else 0
    if isinstance(op, ast.Pow) and right == 2:
        return left * left
    return UNKNOWN


def _plain(op: ast.operator, left: float, right: float) -> Value:
    function = _PLAIN.get(type(op))
    if function is None or (isinstance(op, ast.Pow) and abs(right) > _MAX_POWER):
        return UNKNOWN
    try:
        value = function(left, right)
    except (ArithmeticError, ValueError):
        return UNKNOWN
    return value if isinstance(value, (int, float)) else UNKNOWN


def _sequence_binary(m: ShapeMachine, op: ast.operator, left: Value, right: Value) -> Value:
    """Lists, tuples and texts: `[a] + b`, `[64] * 3`."""
    if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
        return left + right if len(left) + len(right) < _MAX_TEXT else UNKNOWN
    if isinstance(op, ast.Add):
        a, b = m.memory.items(left), m.memory.items(right)
        if a is not None and b is not None:
            return (*a, *b) if isinstance(left, tuple) else m.memory.new_list([*a, *b])
    if isinstance(op, ast.Mult):
        series, times = (right, left) if isinstance(left, int) else (left, right)
        items = m.memory.items(series)
        if items is not None and isinstance(times, int) and len(items) * times < 10_000:
            many = items * times
            return tuple(many) if isinstance(series, tuple) else m.memory.new_list(many)
    return UNKNOWN


def _unary(m: ShapeMachine, node: ast.UnaryOp, frame: CallFrame) -> Value:
    value = m.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        return truth.negated(value)
    if isinstance(value, ShapedTensor):
        return ShapedTensor(value.shape)
    if isinstance(node.op, ast.USub) and (is_dim(value) or isinstance(value, float)):
        return -value
    return value if isinstance(node.op, ast.UAdd) else UNKNOWN


def _boolean(m: ShapeMachine, node: ast.BoolOp, frame: CallFrame) -> Value:
    is_and = isinstance(node.op, ast.And)
    is_unsure, value = False, UNKNOWN  # type: tuple[bool, Value]
    for part in node.values:
        value = m.evaluate(part, frame)
        known = truth.of(value)
        if known is not None and known is not is_and:
            return value if not is_unsure else not is_and if isinstance(value, bool) else UNKNOWN
        is_unsure = is_unsure or known is None
    return UNKNOWN if is_unsure else value


def _compare(m: ShapeMachine, node: ast.Compare, frame: CallFrame) -> Value:
    left = m.evaluate(node.left, frame)
    outcome: Value = True
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = m.evaluate(part, frame)
        is_elementwise = not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        if is_elementwise and (isinstance(left, ShapedTensor) or isinstance(right, ShapedTensor)):
            return _elementwise(m, node, (left, right), frame)
        members = iteration.items_of(m, right) if isinstance(right, Ref) else None
        one = truth.compared(op, left, right if members is None else tuple(members))
        if one is not True:
            outcome = one if outcome is True else outcome
        left = right
    return outcome


def _elementwise(
    m: ShapeMachine, node: ast.Compare, pair: tuple[Value, Value], frame: CallFrame
) -> Value:
    try:
        return products.broadcast(*pair, m.symbols)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, "comparison") from None


def _choice(m: ShapeMachine, node: ast.IfExp, frame: CallFrame) -> Value:
    test = m.evaluate(node.test, frame)
    known = truth.of(test)
    if known is not None:
        return m.evaluate(node.body if known else node.orelse, frame)
    m.unsure += 0 if test is TRAINING else 1
    first, second = m.evaluate(node.body, frame), m.evaluate(node.orelse, frame)
    m.unsure -= 0 if test is TRAINING else 1
    return m.memory.join(first, second)


def _members(m: ShapeMachine, elements: list[ast.expr], frame: CallFrame) -> list[Value] | None:
    found: list[Value] = []
    for element in elements:
        if isinstance(element, ast.Starred):
            items = iteration.items_of(m, m.evaluate(element.value, frame))
            if items is None:
                return None
            found.extend(items)
        else:
            found.append(m.evaluate(element, frame))
    return found


def _tuple(m: ShapeMachine, node: ast.Tuple, frame: CallFrame) -> Value:
    members = _members(m, node.elts, frame)
    return UNKNOWN if members is None else tuple(members)


def _list(m: ShapeMachine, node: ast.List, frame: CallFrame) -> Value:
    members = _members(m, node.elts, frame)
    return UNKNOWN if members is None else m.memory.new_list(members)


def _dict(m: ShapeMachine, node: ast.Dict, frame: CallFrame) -> Value:
    fields: dict[object, Value] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = m.evaluate(value_node, frame)
        if key_node is None:
            pairs = iteration.pairs_of(m, value)
            if pairs is None:
                return UNKNOWN
            fields.update(pairs)
            continue
        key = m.evaluate(key_node, frame)
        if not isinstance(key, (str, int, float, tuple)):
            return UNKNOWN
        fields[key] = value
    return m.memory.new("dict", fields)


def _comprehension(
    m: ShapeMachine, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: CallFrame
) -> Value:
    found = _rounds(m, node.generators, frame, lambda: m.evaluate(node.elt, frame))
    return UNKNOWN if found is None else m.memory.new_list(found)


def _dict_comprehension(m: ShapeMachine, node: ast.DictComp, frame: CallFrame) -> Value:
    def pair() -> Value:
        return (m.evaluate(node.key, frame), m.evaluate(node.value, frame))

    found = _rounds(m, node.generators, frame, pair)
    pairs = [p for p in found or () if isinstance(p, tuple) and isinstance(p[0], (str, int))]
    return (
        UNKNOWN if found is None or len(pairs) < len(found) else m.memory.new("dict", dict(pairs))
    )


def _rounds(
    m: ShapeMachine,
    generators: list[ast.comprehension],
    frame: CallFrame,
    made: Callable[[], Value],
) -> list[Value] | None:
    """Evaluate what a comprehension makes in each round; None where the rounds are not known."""
    if not generators:
        return [made()]
    items = iteration.items_of(m, m.evaluate(generators[0].iter, frame))
    if items is None:
        return None
    found: list[Value] = []
    before = dict(frame.names)
    for item in items:
        statements.assign(m, generators[0].target, item, frame)
        kept = [truth.of(m.evaluate(test, frame)) for test in generators[0].ifs]
        if None in kept:
            return None
        if all(kept):
            inner = _rounds(m, generators[1:], frame, made)
            if inner is None:
                return None
            found.extend(inner)
    frame.names.clear()
    frame.names.update(before)
    return found


def _lambda(m: ShapeMachine, node: ast.Lambda, frame: CallFrame) -> Value:
    around = {**frame.around, **frame.names}
    return FunctionRef(frame.module, node, around, owner=frame.owner)


def _text(m: ShapeMachine, node: ast.JoinedStr, frame: CallFrame) -> Value:
    parts = []
    for part in node.values:
        value = m.evaluate(part.value, frame) if isinstance(part, ast.FormattedValue) else None
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(value, (str, int)):
            parts.append(str(value))
        else:
            return UNKNOWN
    return "".join(parts)


def _walrus(m: ShapeMachine, node: ast.NamedExpr, frame: CallFrame) -> Value:
    value = m.evaluate(node.value, frame)
    statements.assign(m, node.target, value, frame)
    return value


def _subscript(m: ShapeMachine, node: ast.Subscript, frame: CallFrame) -> Value:
    return subscripts.subscript(m, node, frame)


_RULES: dict[type[ast.expr], Callable[[Any, Any, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Lambda: _lambda,
    ast.JoinedStr: _text,
    ast.NamedExpr: _walrus,
    ast.Subscript: _subscript,
}
