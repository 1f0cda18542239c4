"""What callers give for the parameters of a function, across the files of a project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module, argument

MANY = 8  # calls of one function; past that it is a tool for all purposes

Handed = tuple[Module, ast.AST, ast.expr]  # the file, the scope and the expression of an argument


def handed_over(project: Project, module: Module, at: ast.AST, key: str) -> list[Handed]:
    """Return what all callers give for a name that is a parameter here, or is kept from one.

    Nothing where a call cannot be read, or leaves the parameter to its default.
    """
    found = _parameter(project, module, at, key)
    if found is None:
        return []
    home, function, name = found
    calls = _calls_of(project, home, function)
    given = [(m, _scope(m, c), _given(home, function, c, name)) for m, c in calls]
    if not 0 < len(given) <= MANY:
        return []
    handed = [(m, scope, node) for m, scope, node in given if node is not None]
    return handed if len(handed) == len(given) else []


def _parameter(
    project: Project, module: Module, at: ast.AST, key: str
) -> tuple[Module, Function, str] | None:
    """The function that a name is a parameter of; for ``self.x`` the constructor that keeps it."""
    if key.startswith("self."):
        cls = module.class_of(at)
        init = None if cls is None else module.functions.get(f"{module.dotted(cls)}.__init__")
        kept = {v.id for v in project.lookup(module, at, key) if isinstance(v, ast.Name)}
        if init is None or len(kept) != 1 or not kept & set(_names(init)):
            return None
        return module, init, kept.pop()
    for scope in (at, *module.enclosing(at)):
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and key in _names(scope):
            is_set = key in project.bindings(scope)
            return None if is_set else (module, scope, key)
    return None


def _names(function: Function) -> list[str]:
    spec = function.args
    return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


@lru_cache(maxsize=512)
def _calls_of(
    project: Project, home: Module, function: Function
) -> tuple[tuple[Module, ast.Call], ...]:
    return tuple(_find_calls(project, home, function))


def _find_calls(
    project: Project, home: Module, function: Function
) -> Iterator[tuple[Module, ast.Call]]:
    cls = home.class_of(function)
    is_init = function.name == "__init__" and cls is not None
    wanted = cls.name if is_init and cls is not None else function.name
    for module in project.modules:
        for call, name in module.calls():
            is_method = isinstance(call.func, ast.Attribute)
            written = call.func.attr if isinstance(call.func, ast.Attribute) else name
            if written.rsplit(".", 1)[-1] != wanted:
                continue
            if is_init:
                found = project.find_class(module, name)
                if found is not None and found[1] is cls:
                    yield module, call
            elif cls is not None and is_method:
                yield module, call
            elif cls is None and (not is_method or name.split(".", 1)[0] in _imported(module)):
                meant = project.find_function(module, name)
                if meant is not None and meant[1] is function:
                    yield module, call


def _imported(module: Module) -> set[str]:
    """The names that stand for modules: ``engine`` in ``engine.train(model)``."""
    return {*module.aliases, *(a.split(".", 1)[0] for a in module.aliases.values())}


def _given(home: Module, function: Function, call: ast.Call, name: str) -> ast.expr | None:
    names = _names(function)
    if home.class_of(function) is not None and names[:1] == ["self"]:
        names = names[1:]
    return argument(call, name, names.index(name)) if name in names else None


def _scope(module: Module, call: ast.Call) -> ast.AST:
    return module.function_of(call) or module.tree
