"""Statements around, between and in place of others."""

from __future__ import annotations

import ast

from bench.rewriting import names, scopes


def inside_with(tree: ast.Module) -> bool:
    """Loops stand in a context that does nothing."""
    changed = False
    for block in list(scopes.blocks(tree)):
        for position, node in enumerate(block):
            if isinstance(node, ast.For):
                item = ast.withitem(scopes.expression("contextlib.nullcontext()"))
                block[position] = ast.With([item], [node])
                changed = True
    if changed:
        scopes.add_import(tree, "import contextlib")
    return changed


def inside_try(tree: ast.Module) -> bool:
    """Loops stand in a `try` whose `finally` prints."""
    changed = False
    for block in list(scopes.blocks(tree)):
        for position, node in enumerate(block):
            if isinstance(node, ast.For):
                block[position] = ast.Try([node], [], [], [scopes.statement("print('done')")])
                changed = True
    return changed


def with_prints(tree: ast.Module) -> bool:
    """Prints and log lines between the statements of functions and loops."""
    changed = False
    for node in ast.walk(tree):
        if not isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            continue
        first = 1 if scopes.is_docstring(node.body[0]) else 0
        is_super = isinstance(node, ast.FunctionDef) and node.name == "__init__"
        position = first + (1 if is_super and len(node.body) > first else 0)
        node.body.insert(position, scopes.statement("logging.getLogger('run').debug('here')"))
        node.body.insert(position, scopes.statement("print('.', end='')"))
        changed = True
    if changed:
        scopes.add_import(tree, "import logging")
    return changed


def with_dead_code(tree: ast.Module) -> bool:
    """A function that nothing calls, a branch that never runs, a variable that nobody reads."""
    position = 0
    for i, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or scopes.is_docstring(node):
            position = i + 1
    tree.body[position:position] = ast.parse(
        "_unused_scale = 3\n"
        "def _never_called(values):\n    total = 0\n"
        "    for value in values:\n        total += value\n    return total\n"
        "if False:\n    _never_called([_unused_scale])\n"
    ).body
    return True


def walrus(tree: ast.Module) -> bool:
    """`x = f()` and `x.g()` become `(x := f()).g()`."""
    changed = False
    for block in scopes.blocks(tree):
        for position in range(len(block) - 1, 0, -1):
            before, node = block[position - 1], block[position]
            name = scopes.bound_name(before)
            func = node.value.func if _is_call(node) else None  # type: ignore[attr-defined]
            owner = func.value if isinstance(func, ast.Attribute) else None
            if name and isinstance(owner, ast.Name) and owner.id == name:
                assert isinstance(before, ast.Assign) and isinstance(func, ast.Attribute)
                func.value = ast.NamedExpr(ast.Name(name, ast.Store()), before.value)
                del block[position - 1]
                changed = True
    return changed


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def inlined(tree: ast.Module) -> bool:
    """A variable that is read once, in the next statement, is replaced by its value.

    One whose name says what is meant stays: see `names.MEANT`.
    """
    changed = False
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.Module, ast.FunctionDef)):
            continue
        reads = [n.id for n in ast.walk(scope) if isinstance(n, ast.Name)]
        for block in scopes.blocks(scope):
            for position in range(len(block) - 1, 0, -1):
                name = scopes.bound_name(block[position - 1])
                is_free = name and not names.MEANT.search(name)
                if is_free and reads.count(name) == 2 and _replace(block, position, name):
                    changed = True
    return changed


def _replace(block: list[ast.stmt], position: int, name: str) -> bool:
    before, node = block[position - 1], block[position]
    simple = isinstance(node, (ast.Assign, ast.Expr, ast.Return))
    if not simple or not isinstance(before, ast.Assign):
        return False
    places = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
    bound = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
    if len(places) != 1 or any(isinstance(n, bound) for n in ast.walk(node)):
        return False
    if not isinstance(places[0].ctx, ast.Load) or _is_behind_call(node, places[0]):
        return False
    block[position] = _Put(places[0], before.value).visit(node)
    del block[position - 1]
    return True


def _is_behind_call(node: ast.stmt, place: ast.Name) -> bool:
    """Tell whether something else is called before the variable is read."""
    for found in ast.walk(node):
        if isinstance(found, ast.Call) and not any(n is place for n in ast.walk(found)):
            return True
    return False


class _Put(ast.NodeTransformer):
    def __init__(self, place: ast.AST, value: ast.expr) -> None:
        self.place, self.value = place, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node is self.place else node


def named_arguments(tree: ast.Module) -> bool:
    """The arguments of calls that are statements or values get names of their own first."""
    changed = False
    count = 0
    for block in list(scopes.blocks(tree)):
        for node in list(block):
            call = getattr(node, "value", None)
            is_plain = isinstance(node, (ast.Assign, ast.Expr)) and isinstance(call, ast.Call)
            if not is_plain or not isinstance(call, ast.Call):
                continue
            if any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in ast.walk(call.func)):
                continue
            new: list[ast.stmt] = []
            for position, given in enumerate(call.args):
                if isinstance(given, ast.Call):
                    name = f"_arg{count}"
                    count += 1
                    new.append(ast.Assign([ast.Name(name, ast.Store())], given))
                    call.args[position] = ast.Name(name, ast.Load())
            at = block.index(node)
            block[at:at] = new
            changed = changed or bool(new)
    return changed


def bound_methods(tree: ast.Module) -> bool:
    """`f = x.step` and `f()` for `x.step()`."""
    changed = False
    count = 0
    for block in list(scopes.blocks(tree)):
        for node in list(block):
            if not _is_call(node):
                continue
            call = node.value  # type: ignore[attr-defined]
            func = call.func
            if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
                continue
            if func.attr not in ("step", "zero_grad", "backward", "eval", "train"):
                continue
            name = f"_act{count}"
            count += 1
            block.insert(block.index(node), ast.Assign([ast.Name(name, ast.Store())], func))
            call.func = ast.Name(name, ast.Load())
            changed = True
    return changed


MODES = ("train", "eval")


def chained(tree: ast.Module) -> bool:
    """`x = f()` and `x = x.g()` become `x = f().g()`; `m = Net()` and `m.eval()` `Net().eval()`."""
    own = {n.name for n in ast.walk(tree) if isinstance(n, scopes.DEFINITIONS)}
    changed = False
    for block in scopes.blocks(tree):
        for position in range(len(block) - 1, 0, -1):
            before, node = block[position - 1], block[position]
            name = scopes.bound_name(before)
            call = node.value if isinstance(node, (ast.Assign, ast.Expr)) else None
            if not name or not isinstance(call, ast.Call) or not isinstance(before, ast.Assign):
                continue
            is_mode = (
                isinstance(node, ast.Expr) and _sets_mode(call) and not {"train", "eval"} & own
            )
            if not is_mode and scopes.bound_name(node) != name:
                continue
            if _chain_onto(call, name, before.value):
                block[position - 1 : position + 1] = [
                    ast.Assign([ast.Name(name, ast.Store())], call)
                ]
                changed = True
    return changed


def _sets_mode(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in MODES


def _chain_onto(call: ast.Call, name: str, value: ast.expr) -> bool:
    """Put a value in the place of the name that a chain of methods begins with."""
    if sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(call)) != 1:
        return False
    if not isinstance(value, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)):
        return False
    link: ast.expr = call
    while isinstance(link, ast.Call) and isinstance(link.func, ast.Attribute):
        owner = link.func.value
        if isinstance(owner, ast.Name) and owner.id == name:
            link.func.value = value
            return True
        link = owner
    return False
