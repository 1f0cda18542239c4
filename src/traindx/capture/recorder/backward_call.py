"""Finds the statement of the user's source that calls `backward`, and the way to it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class CannotSlice(Exception):
    """The loss cannot be computed again from the user's source."""


Path = list[tuple[list[ast.stmt], int]]


def body_of(frame: FrameType) -> list[ast.stmt]:
    """Return the statements of a frame's function, if the file is still what is running."""
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if not lines:
        raise CannotSlice("no source")
    text = "".join(lines)
    tree = ast.parse(text)
    compiled = compile(text, code.co_filename, "exec", dont_inherit=True)
    twin = next((c for c in _codes(compiled) if _key(c) == _key(code)), None)
    if twin is None or twin.co_code != code.co_code:
        raise CannotSlice("the file has changed")
    if code.co_name == "<module>":
        return tree.body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node.body
    raise CannotSlice("the function is not found")


def _key(code: CodeType) -> tuple[str, int, tuple[str, ...], tuple[str, ...]]:
    return code.co_name, code.co_firstlineno, code.co_names, code.co_varnames


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, DEFINITIONS):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def path_to(body: list[ast.stmt], line: int, *, is_after: bool) -> Path:
    """Return the way to the innermost statement at a line: blocks, and the place in each."""
    at_line = [
        index
        for index, statement in enumerate(body)
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno)
    ]
    if not at_line:
        raise CannotSlice("no statement at this line")
    index = at_line[-1]
    if len(at_line) > 1 and not is_after:  # a; b; c on one line
        index = next((i for i in at_line if _backward_call(body[i]) is not None), index)
    for block in _blocks(body[index]):
        try:
            return [(body, index), *path_to(block, line, is_after=is_after)]
        except CannotSlice:
            continue
    return [(body, index)]


def backward_path(path: Path) -> Path:
    """Return the way to the call of backward: the statement itself, or the nearest before it."""
    block, index = path[-1]
    if not list(_blocks(block[index])) and _backward_call(block[index]) is not None:
        return path
    for depth in range(len(path) - 1, -1, -1):
        block, index = path[depth]
        for earlier in range(index - 1, -1, -1):
            found = _last_backward(block, earlier)
            if found:
                return [*path[:depth], *found]
    raise CannotSlice("backward is called elsewhere")


def _last_backward(block: list[ast.stmt], index: int) -> Path:
    statement = block[index]
    inner = list(_blocks(statement))
    if not inner and not isinstance(statement, DEFINITIONS):
        return [(block, index)] if _backward_call(statement) is not None else []
    for part in reversed(inner):
        for place in range(len(part) - 1, -1, -1):
            found = _last_backward(part, place)
            if found:
                return [(block, index), *found]
    return []


def scope_of(path: Path) -> tuple[Path, ast.For | None]:
    """Return the part of the way that is inside the innermost loop, and that loop."""
    for depth in range(len(path) - 2, -1, -1):
        owner = path[depth][0][path[depth][1]]
        if isinstance(owner, (ast.For, ast.While)):
            return path[depth + 1 :], owner if isinstance(owner, ast.For) else None
    return path, None


def _backward_call(statement: ast.stmt) -> ast.Call | None:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and _method(node) in {"backward", "manual_backward"}:
            return node
    return None


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def loss_expression(statement: ast.stmt, names: dict[str, Any]) -> ast.expr:
    """Return what `backward` is called on, or with."""
    call = _backward_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute):
        raise CannotSlice("backward is called elsewhere")
    owner = call.func.value
    if isinstance(owner, ast.Name) and isinstance(names.get(owner.id), torch.Tensor):
        return owner
    if isinstance(owner, ast.Call) and _method(owner) == "scale" and len(owner.args) == 1:
        return owner.args[0]  # of a GradScaler
    given = call.args or [k.value for k in call.keywords if k.arg in {"loss", "tensors"}]
    if given and isinstance(owner, (ast.Name, ast.Attribute)):
        return given[0]
    return owner
