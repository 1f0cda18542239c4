"""Which names a piece of code binds and reads; what all transformations ask."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
HEAD = (*DEFINITIONS, ast.Import, ast.ImportFrom)


def stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code binds, functions and classes inside it included."""
    found: set[str] = set()
    for node in walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (*DEFINITIONS, ast.ExceptHandler)) and node.name:
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= set(node.names)
    return found


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code reads."""
    return loaded_of(walk(nodes))


def loaded_of(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that are read among nodes, without what is inside of them."""
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def split_head(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
    """Return imports and definitions, and the program's own statements; None where they mix.

    A program whose statements run only under `__main__` gives those.
    """
    head = [n for n in tree.body if isinstance(n, HEAD) or is_docstring(n)]
    body = [n for n in tree.body if n not in head]
    if not body or any(isinstance(n, ast.Import | ast.ImportFrom) and has_star(n) for n in head):
        return None
    if len(body) == 1 and is_main_guard(body[0]):
        return None
    if has_await(body) or any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in walk(tree.body)):
        return None
    return head, [*_unguarded(body)]


def _unguarded(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if is_main_guard(node) and isinstance(node, ast.If):
            yield from node.body
        else:
            yield node


def has_star(node: ast.Import | ast.ImportFrom) -> bool:
    return any(a.name == "*" for a in node.names)


def has_await(nodes: Iterable[ast.AST]) -> bool:
    kinds = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom, ast.Return)
    return any(isinstance(n, kinds) for n in outer_walk(nodes))


def outer_walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk code without the insides of its functions and classes."""
    pending = list(nodes)
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            pending[:0] = list(ast.iter_child_nodes(node))


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_main_guard(node: ast.stmt) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    left = test.left if isinstance(test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


def used_by_definitions(head: Sequence[ast.stmt], body: Sequence[ast.stmt]) -> bool:
    """Tell whether functions or classes read names that the program's statements bind."""
    return any(free(n) & stored(body) for n in head if isinstance(n, DEFINITIONS))


def free(node: ast.AST) -> set[str]:
    """Return the names that a definition takes from the code around it."""
    if isinstance(node, ast.ClassDef):
        outer = loaded([*node.bases, *node.keywords, *node.decorator_list])
        return outer.union(*(free(n) for n in node.body))
    parameters = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    return loaded([node]) - stored([node]) - parameters


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements in a tree."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def bound_name(node: ast.stmt) -> str:
    """Return the one name that a plain assignment binds."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def after_imports(tree: ast.Module) -> int:
    """Return the position behind the imports at the top of a file."""
    position = 0
    for i, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_docstring(node):
            position = i + 1
        else:
            break
    return position


def statement(text: str) -> ast.stmt:
    """Return a statement that is written out."""
    return ast.parse(text).body[0]


def expression(text: str) -> ast.expr:
    """Return an expression that is written out."""
    return ast.parse(text, mode="eval").body


def add_import(tree: ast.Module, text: str) -> None:
    """Add an import behind the docstring and `from __future__`."""
    position = 0
    for node in tree.body:
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_docstring(node) or is_future):
            break
        position += 1
    tree.body.insert(position, statement(text))
