"""Functions that a module calls after each of its passes: `register_forward_hook`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, iteration, library
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Items,
    Known,
    Method,
    PartialCall,
    Result,
    Scope,
    Site,
    Value,
    joined,
    options_of,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

REGISTERS = "register_forward_hook"
HOOKS = ("forward hooks",)
WITH_NAMES = "with_kwargs"  # the hook is given what is given by name as well


def method(
    m: Machine, called: Method, args: Sequence[Value], kwargs: Mapping[str, Value], site: Site
) -> Value | None:
    """Register a hook or take it back, where a method does so; return the handle of a new one."""
    if called.name == REGISTERS and library.is_module(called.receiver):
        return _register(m, called.receiver, args, kwargs, site)
    if called.name == "remove":
        _remove(m, called.receiver)
    return None


def _register(
    m: Machine, module: Value, args: Sequence[Value], kwargs: Mapping[str, Value], site: Site
) -> Value | None:
    """Note a function of the project that a module is to call; return its handle."""
    hook = args[0] if args else kwargs.get("hook")
    if not isinstance(hook, (FunctionValue, PartialCall)) or WITH_NAMES in kwargs:
        return None
    m.write(module.fields, HOOKS, iteration.items_of([*_hooks(module), hook], "tuple"))
    return Result(f".{REGISTERS}", module, tuple(args), dict(kwargs), site=site)


def _remove(m: Machine, handle: Value) -> None:
    """Take a function back, by the handle that its registration returned."""
    if isinstance(handle, Result) and handle.maker == f".{REGISTERS}" and handle.receiver:
        hook = handle.args[0] if handle.args else handle.kwargs.get("hook")
        left = [h for h in _hooks(handle.receiver) if h is not hook]
        m.write(handle.receiver.fields, HOOKS, iteration.items_of(left, "tuple"))


def _hooks(module: Value) -> list[Value]:
    """The functions of a module; those that are only registered on a condition are left out."""
    found = module.fields.get(HOOKS) if module.held else None
    return found.members if isinstance(found, Items) else []


def after_pass(
    m: Machine, module: Value, args: Sequence[Value], output: Value, node: ast.AST, scope: Scope
) -> Value:
    """Call the hooks of a module with its output, which what they return replaces."""
    for hook in _hooks(module):
        given = (module, iteration.items_of(args, "tuple"), output)
        output = _replaced(output, calls.call(m, hook, given, {}, node, scope))
    return output


def _replaced(output: Value, returned: Value) -> Value:
    """Return the output that a hook leaves: its own where it returns one, else the module's."""
    others = [o for o in options_of(returned) if not (isinstance(o, Known) and o.value is None)]
    if not others:
        return output
    if len(others) < len(options_of(returned)):
        others.append(output)
    found = others[0]
    for other in others[1:]:
        found = joined(found, other)
    return found
