"""Questions about nodes of a syntax tree: what they name, call, assign and where numbers stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.source import Function, Source


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` of a name or an attribute, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def last(node: ast.AST) -> str:
    """Return the last part of what a call calls."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def named(source: Source, *names: str) -> list[ast.Call]:
    """Return the calls of functions or classes with these last names."""
    return [c for c in source.calls() if last(c) in names]


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg in names), None)


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """Return an argument given by place or by name."""
    plain = not any(isinstance(a, ast.Starred) for a in call.args)
    if plain and len(call.args) > position:
        return call.args[position]
    return keyword(call, *names)


def targets(statement: ast.AST) -> list[ast.expr]:
    """Return what an assignment assigns to, tuples opened."""
    if not isinstance(statement, ast.Assign):
        return []
    found: list[ast.expr] = []
    for target in statement.targets:
        found += target.elts if isinstance(target, ast.Tuple) else [target]
    return found


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def method_statements(source: Source, method: str) -> list[tuple[ast.Expr, ast.Call, str]]:
    """Return the statements `OWNER.method(...)` with their call and owner."""
    found = []
    for node in source.nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == method:
            found.append((node, call, dotted(call.func.value)))
    return found


def imported(source: Source) -> set[str]:
    """Return the names that a file's imports bind for all of it."""
    found = set()
    for node in source.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {a.asname or a.name.split(".")[0] for a in node.names}
    return found


def is_bound(source: Source, name: str, at: ast.AST) -> bool:
    """Tell whether a name means something in the function around a node, or in the file."""
    root = name.split(".", maxsplit=1)[0]
    scope: ast.AST | None = at
    while scope is not None:
        scope = source.around(scope, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(scope, Function) and root in _bound_in(scope):
            return True
    top = [n for n in source.tree.body if not isinstance(n, Function | ast.ClassDef)]
    made = {getattr(n, "name", "") for n in source.tree.body}
    return root in imported(source) | made | {x for n in top for x in _bound_in(n)}


def taken(source: Source, at: ast.AST) -> set[str]:
    """Return the names that the function around a node, or else the file, gives a meaning."""
    scope = source.around(at, ast.FunctionDef, ast.AsyncFunctionDef)
    if scope is not None:
        return _bound_in(scope)
    top = [n for n in source.tree.body if not isinstance(n, Function | ast.ClassDef)]
    return {x for n in top for x in _bound_in(n)}


def _bound_in(node: ast.AST) -> set[str]:
    given = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return given | {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def number(source: Source, node: ast.expr | None) -> ast.Constant | None:
    """Return the literal that a value comes from, followed through names, defaults and tables."""
    if isinstance(node, ast.Constant):
        return node if type(node.value) in (int, float) else None
    key = _key(node)
    if not key:
        return None
    found = list(_literals(source, key))
    return found[0] if len(found) == 1 else None


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _literals(source: Source, key: str) -> Iterator[ast.Constant]:
    """Yield the numbers that are given to a name, a field, an option or a key of a table."""
    for node in source.nodes:
        value: ast.expr | None = None
        if (isinstance(node, ast.Assign) and key in {dotted(t) for t in node.targets}) or (
            isinstance(node, ast.AnnAssign) and dotted(node.target) == key
        ):
            value = node.value
        elif isinstance(node, ast.Call) and last(node) == "add_argument" and node.args:
            option = node.args[-1]
            if isinstance(option, ast.Constant):
                is_it = str(option.value).lstrip("-").replace("-", "_") == key
                value = keyword(node, "default") if is_it else None
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            found = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key]
            value = found[0] if found else None
        elif isinstance(node, Function):
            value = _default(node, key)
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            yield value


def _default(function: Function, key: str) -> ast.expr | None:
    given = function.args
    names = [a.arg for a in given.args][len(given.args) - len(given.defaults) :]
    return dict(zip(names, given.defaults, strict=True)).get(key)
