"""`while` loops that end when an iterator does: they go over what it goes over."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from traindx.analysis.program.syntax import Module

ENDS = (ast.Break, ast.Return)


def drawing_call(module: Module, node: ast.While) -> ast.Call | None:
    """Return the `next(…)` that ends a loop when its iterator is exhausted; None without one."""
    found = list(_ending_calls(module, node))
    is_one = len(found) == 1 and found[0].args and not _is_bound_in(node, found[0].args[0])
    return found[0] if is_one else None


def _ending_calls(module: Module, node: ast.While) -> Iterator[ast.Call]:
    for call in _own_calls(node.test):
        if len(call.args) == 2:  # `while (batch := next(batches, None)) is not None`
            yield call
    is_around = _is_left_at_end(module.parents.get(node), node)
    for statement in node.body:
        if isinstance(statement, ast.Try):
            yield from _tried(statement)
        elif is_around:
            yield from (c for c in _own_calls(statement) if len(c.args) == 1)


def _tried(node: ast.Try) -> Iterator[ast.Call]:
    """The `next(…)` in a `try` that leaves the loop on `StopIteration`."""
    for handler in node.handlers:
        if _is_stop(handler) and handler.body and isinstance(handler.body[-1], ENDS):
            for statement in node.body:
                yield from (c for c in _own_calls(statement) if len(c.args) == 1)


def _is_left_at_end(around: ast.AST | None, node: ast.While) -> bool:
    """Tell whether a loop stands in a `try` that catches the end of an iterator."""
    is_inside = isinstance(around, ast.Try) and node in around.body
    return is_inside and isinstance(around, ast.Try) and any(map(_is_stop, around.handlers))


def _is_stop(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.type, ast.Name) and handler.type.id == "StopIteration"


def _own_calls(node: ast.AST) -> list[ast.Call]:
    """The calls of `next` with the name of an iterator, outside of other loops."""
    if isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)):
        return []
    calls: Sequence[ast.Call] = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return [
        c
        for c in calls
        if isinstance(c.func, ast.Name) and c.func.id == "next" and c.args
        and isinstance(c.args[0], (ast.Name, ast.Attribute))
    ]  # fmt: skip


def _is_bound_in(node: ast.While, iterator: ast.expr) -> bool:
    """Tell whether the loop itself sets its iterator: then it may start anew."""
    text = ast.unparse(iterator)
    targets = (n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(isinstance(t.ctx, ast.Store) and ast.unparse(t) == text for t in targets)
