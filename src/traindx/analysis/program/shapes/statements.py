"""Statements: assignment, conditions with both sides explored, loops unrolled where known."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes import construction, iteration, truth
from traindx.analysis.program.shapes.values import (
    TRAINING,
    UNKNOWN,
    CallFrame,
    FunctionRef,
    GiveUp,
    Record,
    Ref,
    SizesOf,
    Value,
)
from traindx.analysis.program.syntax import Function

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

NEXT, BREAK, CONTINUE, RETURN, RAISE = "next", "break", "continue", "return", "raise"
MAX_ROUNDS = 300  # of one loop; the longest stacks of blocks have some 200


def run(m: ShapeMachine, body: Sequence[ast.stmt], frame: CallFrame) -> str:
    """Run statements; return how they end."""
    for statement in body:
        status = _statement(m, statement, frame)
        if status != NEXT:
            return status
    return NEXT


def _statement(m: ShapeMachine, node: ast.stmt, frame: CallFrame) -> str:
    if isinstance(node, ast.Return):
        value = None if node.value is None else m.evaluate(node.value, frame)
        frame.returns.append(value)
        return RETURN
    if isinstance(node, ast.If):
        return _condition(m, node, frame)
    if isinstance(node, ast.For):
        return _loop(m, node, frame)
    if isinstance(node, ast.While):
        _forget(m, [*node.body, *node.orelse], frame)
        return NEXT
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _context(m, node, frame)
    if isinstance(node, ast.Try):
        return _attempt(m, node, frame)
    if isinstance(node, (ast.Break, ast.Continue)):
        return BREAK if isinstance(node, ast.Break) else CONTINUE
    if isinstance(node, ast.Raise):
        return RAISE
    if isinstance(node, ast.Assert):
        return RAISE if truth.of(m.evaluate(node.test, frame)) is False else NEXT
    if isinstance(node, ast.Match):
        raise GiveUp(f"line {node.lineno}: a match statement")
    _simple(m, node, frame)
    return NEXT


def _simple(m: ShapeMachine, node: ast.stmt, frame: CallFrame) -> None:
    if isinstance(node, ast.Assign):
        value = m.evaluate(node.value, frame)
        for target in node.targets:
            assign(m, target, value, frame)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        assign(m, node.target, m.evaluate(node.value, frame), frame)
    elif isinstance(node, ast.AugAssign):
        left = _loaded(node.target)
        whole = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        assign(m, node.target, m.evaluate(whole, frame), frame)
    elif isinstance(node, ast.Expr):
        m.evaluate(node.value, frame)
    elif isinstance(node, Function):
        around = {**frame.around, **frame.names}
        frame.names[node.name] = FunctionRef(frame.module, node, around, owner=frame.owner)
    elif isinstance(node, ast.Delete):
        _forget(m, [node], frame)


def _loaded(target: ast.expr) -> ast.expr:
    """Return an assignment's target as an expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target


def assign(m: ShapeMachine, target: ast.expr, value: Value, frame: CallFrame) -> None:
    """Bind a value to a name, attribute, item or several of them."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
    elif isinstance(target, ast.Attribute):
        owner = m.evaluate(target.value, frame)
        if isinstance(owner, Ref):
            m.memory.set(owner, target.attr, value)
            construction.add_child(m, owner, value)
    elif isinstance(target, ast.Subscript):
        owner = m.evaluate(target.value, frame)
        if isinstance(owner, Ref):
            _assign_item(m, owner, m.evaluate(target.slice, frame), value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(m, target.elts, value, frame)


def _assign_item(m: ShapeMachine, owner: Ref, key: Value, value: Value) -> None:
    fields = m.memory.read(owner).fields
    if isinstance(key, int) and key < 0:
        key += len(fields)
    if isinstance(key, (int, str)):
        m.memory.set(owner, key, value)
    else:
        m.memory.forget(owner)


def _unpack(m: ShapeMachine, targets: list[ast.expr], value: Value, frame: CallFrame) -> None:
    if isinstance(value, SizesOf) and value.tensor.shape.is_open:
        parts: list[Value] = [m.size_at(value.tensor, i) for i in range(len(targets))]
        known = len(value.tensor.shape.sizes)
        for back in range(1, min(known, len(parts)) + 1):
            parts[-back] = m.size_at(value.tensor, -back)
        items: list[Value] | None = parts
    else:
        items = iteration.items_of(m, value)
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if items is not None and starred is None and len(items) != len(targets):
        raise GiveUp(f"line {targets[0].lineno}: {len(items)} values for {len(targets)} names")
    if items is None or (starred is not None and len(items) < len(targets) - 1):
        items = [UNKNOWN] * len(targets)
    elif starred is not None:
        after = len(targets) - starred - 1
        end = len(items) - after
        items = [*items[:starred], m.memory.new_list(items[starred:end]), *items[end:]]
    for target, item in zip(targets, items, strict=True):
        assign(m, target.value if isinstance(target, ast.Starred) else target, item, frame)


def _condition(m: ShapeMachine, node: ast.If, frame: CallFrame) -> str:
    test = m.evaluate(node.test, frame)
    known = truth.of(test)
    if known is not None:
        return m.run(node.body if known else node.orelse, frame)
    return explore(m, (node.body, node.orelse), frame, is_certain=test is TRAINING)


def explore(
    m: ShapeMachine,
    sides: tuple[list[ast.stmt], list[ast.stmt]],
    frame: CallFrame,
    *,
    is_certain: bool,
) -> str:
    """Run both sides of a condition from the same state and keep what holds after either."""
    names, records = dict(frame.names), dict(m.memory.records)
    m.unsure += 0 if is_certain else 1
    first = m.run(sides[0], frame)
    first_names, first_records = dict(frame.names), m.memory.records
    _restore(frame, names)
    m.memory.records = records
    second = m.run(sides[1], frame)
    m.unsure -= 0 if is_certain else 1
    ended = (RETURN, RAISE)
    if first in ended and second in ended:
        return first if first == second else RETURN
    if second in ended:
        _restore(frame, first_names)
        m.memory.records = first_records
        return first
    if first in ended:
        return second
    if first != second:
        raise GiveUp("a loop may end early")
    _join(m, frame, first_names, first_records)
    return first


def _restore(frame: CallFrame, names: dict[str, Value]) -> None:
    frame.names.clear()
    frame.names.update(names)


def _join(
    m: ShapeMachine, frame: CallFrame, names: dict[str, Value], records: dict[int, Record]
) -> None:
    for name in {**frame.names, **names}:
        mine, theirs = frame.names.get(name, UNKNOWN), names.get(name, UNKNOWN)
        frame.names[name] = m.memory.join(theirs, mine)
    m.memory.join_records(records)


def _loop(m: ShapeMachine, node: ast.For, frame: CallFrame) -> str:
    items = iteration.items_of(m, m.evaluate(node.iter, frame))
    if items is None or len(items) > MAX_ROUNDS:
        assign(m, node.target, UNKNOWN, frame)
        _forget(m, [*node.body, *node.orelse], frame)
        return NEXT
    for item in items:
        assign(m, node.target, item, frame)
        status = m.run(node.body, frame)
        if status in (RETURN, RAISE):
            return status
        if status == BREAK:
            return NEXT
    return m.run(node.orelse, frame)


def _context(m: ShapeMachine, node: ast.With | ast.AsyncWith, frame: CallFrame) -> str:
    for item in node.items:
        m.evaluate(item.context_expr, frame)
        if item.optional_vars is not None:
            assign(m, item.optional_vars, UNKNOWN, frame)
    return m.run(node.body, frame)


def _attempt(m: ShapeMachine, node: ast.Try, frame: CallFrame) -> str:
    """What a handler would catch is no fault; what it would do instead is not known."""
    return explore(m, ([*node.body, *node.orelse], []), frame, is_certain=False)


def _forget(m: ShapeMachine, body: Sequence[ast.stmt], frame: CallFrame) -> None:
    """Forget whatever statements may change, since nobody knows how often they run."""
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Return):
            frame.returns.append(UNKNOWN)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            frame.names[node.id] = UNKNOWN
        elif isinstance(node, ast.Name) and isinstance(frame.names.get(node.id), Ref):
            _forget_container(m, frame.names[node.id])
        elif isinstance(node, ast.Attribute) and isinstance(frame.bound, Ref):
            if isinstance(node.ctx, ast.Store):
                m.memory.set(frame.bound, node.attr, UNKNOWN)
            else:
                held = m.memory.read(frame.bound).fields.get(node.attr)
                _forget_container(m, held)


def _forget_container(m: ShapeMachine, value: Value) -> None:
    if isinstance(value, Ref) and m.memory.read(value).kind != "object":
        m.memory.forget(value)
