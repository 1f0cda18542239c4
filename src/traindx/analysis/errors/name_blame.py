"""Which assignment took the name of a function that is called later."""

from __future__ import annotations

import ast
import builtins

from traindx.analysis.errors.culprits import Culprit, FailingStatement, site_of
from traindx.analysis.program.project import project_of
from traindx.analysis.program.renames import apart
from traindx.analysis.program.syntax import key_of
from traindx.model.run import Failure, Run

LIBRARIES = ("torch", "nn", "F", "np", "numpy", "math", "dist")


def taken_name(run: Run, failure: Failure) -> tuple[str, Culprit | None]:
    """Return the called name that an assignment took, and that assignment."""
    site = site_of(run, failure) or _self_call(run)
    if site is None:
        line = _parsed(failure)
        names = [n for n in (_own_result(s) for s in (line.body if line else ())) if n]
        return (names[0], None) if names else ("", None)
    scope = site.function or site.module.tree
    for call, _ in site.module.calls(site.node):
        name = key_of(call.func)
        taken = [n for n in _bindings(scope, name) if _is_result(n, name)] if name else []
        if name and taken:
            says = f"`{ast.unparse(taken[0])}` gives the name of the function to its result"
            return name, Culprit(site.module, taken[0], says, apart(site.module, taken[0]))
    return "", None


def hidden_name(run: Run, failure: Failure, name: str) -> tuple[bool, Culprit | None]:
    """Tell whether a local variable hides what its name means outside, and return its assignment.

    Without the source, the failing line decides: it calls the name that it assigns.
    """
    site = site_of(run, failure)
    line = _parsed(failure)
    is_own = any(_own_result(s) == name for s in (line.body if line else ()))
    outside = _meaning_outside(site, name) if site is not None else ""
    if site is None or not (is_own or outside):
        return is_own, None
    taken = _bindings(site.function or site.module.tree, name)
    if not taken:
        return True, None
    says = f"`{ast.unparse(taken[0])}` makes {name} a local variable{outside}"
    patch = apart(site.module, taken[0]) if len(taken) == 1 else None
    return True, Culprit(site.module, taken[0], says, patch)


def calls_names_only(failure: Failure) -> bool:
    """Tell whether the failing line calls plain names, which were functions when it was written.

    An attribute (`x.T()`, `x.shape(0)`) or a result (`model(x)(y)`) may never have been one.
    """
    line = _parsed(failure)
    called = [n.func for n in ast.walk(line) if isinstance(n, ast.Call)] if line else []
    return bool(called) and all(isinstance(f, ast.Name) or _is_library(f) for f in called)


def _parsed(failure: Failure) -> ast.Module | None:
    """The failing line as a statement, where it is one."""
    code = failure.frames[-1].code if failure.frames else ""
    try:
        return ast.parse(code.removeprefix("return ").rstrip(":"))
    except (SyntaxError, ValueError):
        return None


def _own_result(statement: ast.stmt) -> str:
    """The name that a statement gives to what a call of that name returns."""
    if not isinstance(statement, ast.Assign):
        return ""
    name = key_of(statement.targets[0]) or ""
    return name if name and _is_result(statement, name) else ""


def _meaning_outside(site: FailingStatement, name: str) -> str:
    """Say what a name means around a function; empty where it means nothing there."""
    if site.function is None:
        return ""
    module = site.module
    if name in module.aliases:
        return f" and hides the imported {module.aliases[name]}"
    if name in module.functions or name in module.classes:
        return f" and hides the {name} that is defined in the file"
    is_global = any(module.function_of(n) is None for n in _bindings(module.tree, name))
    if is_global:
        return f" and hides the global {name}"
    return f" and hides the built-in {name}" if hasattr(builtins, name) else ""


def _is_library(called: ast.expr) -> bool:
    return (key_of(called) or "").split(".")[0] in LIBRARIES


def _self_call(run: Run) -> FailingStatement | None:
    """The one statement of the source that gives a function's name to its result."""
    found = [
        FailingStatement(m, n)
        for m in project_of(run).modules
        for n in m.nodes(ast.Assign)
        if isinstance(n.value, ast.Call)
        and key_of(n.value.func) == key_of(n.targets[0]) is not None
    ]
    return found[0] if len(found) == 1 else None


def _bindings(scope: ast.AST, name: str) -> list[ast.Assign]:
    nodes = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    return [n for n in nodes if any(key_of(t) == name for t in n.targets)]


def _is_result(node: ast.Assign, name: str | None) -> bool:
    calls = (n for n in ast.walk(node.value) if isinstance(n, ast.Call))
    return any(key_of(c.func) == name for c in calls)
