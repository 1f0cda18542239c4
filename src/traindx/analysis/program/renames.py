"""Two names for a function and its result, where the result took the name of the function."""

from __future__ import annotations

import ast

from traindx.analysis.program.patches import diff, replacing
from traindx.analysis.program.syntax import Function, Module, key_of


def apart(module: Module, taken: ast.Assign) -> str | None:
    """Return the patch for `loss = loss(…)`.

    The function gets another name where it is made in the same scope and nowhere else; where it
    came from outside, as a parameter does, its result gets one.
    """
    name = key_of(taken.targets[0])
    if name is None or "." in name or not name.isidentifier():
        return None
    scope: Function | ast.Module = module.function_of(taken) or module.tree
    names = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name]
    called = {c.func for c in ast.walk(taken.value) if isinstance(c, ast.Call)}
    made = [n for n in _made(module, scope, name) if n is not taken]
    if len(made) == 1 and isinstance(made[0].value, ast.Call):
        new = _unused(module, "criterion" if "loss" in name else f"{name}_fn", f"{name}_function")
        others = [c.func for c in module.nodes(ast.Call) if key_of(c.func) == name]
        edited = [made[0].targets[0], *(n for n in names if n in called or n in others)]
    elif made or any(n.lineno < taken.lineno for n in names):
        return None
    else:
        is_loss = "loss" in name or "crit" in name
        new = _unused(module, "loss" if is_loss else f"{name}_value", f"{name}_result", scope)
        edited = [n for n in names if n not in called]
    return diff(module, *(replacing(n, new) for n in edited)) if new else None


def _made(module: Module, scope: ast.AST, name: str) -> list[ast.Assign]:
    found = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    return [
        n
        for n in found
        if any(key_of(t) == name for t in n.targets)
        and (module.function_of(n) or module.tree) is scope
    ]


def _unused(module: Module, wish: str, other: str, scope: ast.AST | None = None) -> str:
    """Return the first of two names that means nothing yet."""
    taken = {n.id for n in ast.walk(scope or module.tree) if isinstance(n, ast.Name)}
    taken |= {n.arg for n in ast.walk(scope or module.tree) if isinstance(n, ast.arg)}
    return next((n for n in (wish, other) if n not in taken), "")
