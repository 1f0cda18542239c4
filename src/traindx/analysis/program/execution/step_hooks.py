"""Functions that an optimizer calls before or after each of its steps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, iteration
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Items,
    Method,
    PartialCall,
    Result,
    Scope,
    Table,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

BEFORE, AFTER = "register_step_pre_hook", "register_step_post_hook"


def register(m: Machine, called: Method, args: Sequence[Value]) -> Value | None:
    """Note a function of the project that an optimizer is to call; return its handle."""
    hook = args[0] if args else None
    is_hook = called.name in (BEFORE, AFTER) and isinstance(hook, (FunctionValue, PartialCall))
    if hook is None or not is_hook:
        return None
    held = [*_hooks(called.receiver, called.name), hook]
    m.write(called.receiver.fields, (called.name,), iteration.items_of(held, "tuple"))
    return Result(f".{called.name}", called.receiver, tuple(args))


def _hooks(optimizer: Value, when: str) -> list[Value]:
    held = optimizer.fields.get((when,))
    return held.members if isinstance(held, Items) else []


def run(
    m: Machine, when: str, stepped: Value | None, args: Sequence[Value], node: ast.AST, scope: Scope
) -> None:
    """Run what an optimizer calls around a step of its own, or by a scaler that is given it."""
    for optimizer in (v for v in (stepped, *args[:1]) if v is not None and v.held):
        for hook in _hooks(optimizer, when):
            given = (optimizer, iteration.items_of((), "tuple"), Table())
            calls.call(m, hook, given, {}, node, scope)
