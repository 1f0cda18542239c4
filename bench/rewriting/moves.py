"""The program's statements moved: into a function, method, closure, class or another file."""

from __future__ import annotations

import ast
import builtins

from bench.rewriting import scopes

BUILTINS = frozenset(dir(builtins))


def into_function(tree: ast.Module) -> bool:
    """`def main(): …` and its call."""
    return _wrapped(tree, "def run_everything():\n    pass\nrun_everything()")


def into_method(tree: ast.Module) -> bool:
    """A class with one method that does it all."""
    text = "class Job:\n    def launch(self):\n        pass\nJob().launch()"
    return _wrapped(tree, text)


def into_closure(tree: ast.Module) -> bool:
    """A function that returns the function that does it all."""
    text = "def prepare_job():\n    def job():\n        pass\n    return job\nprepare_job()()"
    return _wrapped(tree, text)


def through_partial(tree: ast.Module) -> bool:
    """`functools.partial(main, 1)()`."""
    text = "def run_all(_seed):\n    pass\nfunctools.partial(run_all, 1)()"
    if not _wrapped(tree, text):
        return False
    scopes.add_import(tree, "import functools")
    return True


def settings_through_partial(tree: ast.Module) -> bool:
    """`make = functools.partial(SGD, lr=0.1)` and `make(params)` for `SGD(params, lr=0.1)`."""
    imported = scopes.stored(n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)))
    count = 0
    for block in scopes.blocks(tree):
        for node in list(block):
            call = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(call, ast.Call) or not _is_imported(call.func, imported):
                continue
            if not call.keywords or any(k.arg is None for k in call.keywords):
                continue
            name = f"_make{count}"
            count += 1
            made = ast.Call(scopes.expression("functools.partial"), [call.func], call.keywords)
            block.insert(block.index(node), ast.Assign([ast.Name(name, ast.Store())], made))
            call.func, call.keywords = ast.Name(name, ast.Load()), []
    if count:
        scopes.add_import(tree, "import functools")
    return bool(count)


def _is_imported(node: ast.expr, imported: set[str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in imported


def _wrapped(tree: ast.Module, text: str) -> bool:
    found = scopes.split_head(tree)
    if found is None or scopes.used_by_definitions(*found):
        return False
    head, body = found
    around = ast.parse(text)
    for node in ast.walk(around):
        is_inner = isinstance(node, ast.FunctionDef) and isinstance(node.body[0], ast.Pass)
        if is_inner and isinstance(node, ast.FunctionDef):
            node.body = body
    tree.body = [*head, *around.body]
    return True


def into_trainer(tree: ast.Module) -> bool:
    """The last loop of the program becomes the method of a class that is made with what it uses."""
    found = scopes.split_head(tree)
    if found is None or scopes.used_by_definitions(*found):
        return False
    head, body = found
    position = next((i for i, n in enumerate(body) if isinstance(n, ast.For) and _trains(n)), None)
    if position is None:
        return False
    loop = body[position]
    own = scopes.stored([loop])
    before, after = scopes.stored(body[:position]), scopes.loaded(body[position + 1 :])
    if own & (after | before):
        return False
    shared = sorted(scopes.loaded([loop]) & before)
    if not shared:
        return False
    loop = _Attributes(frozenset(shared)).visit(loop)
    made = ast.parse(
        "class Coach:\n"
        f"    def __init__(self, {', '.join(shared)}):\n"
        + "".join(f"        self.{n} = {n}\n" for n in shared)
        + "    def work(self):\n        pass\n"
    ).body[0]
    method = made.body[1] if isinstance(made, ast.ClassDef) else None
    if isinstance(method, ast.FunctionDef):
        method.body = [loop]
    call = scopes.statement(f"Coach({', '.join(shared)}).work()")
    tree.body = [*head, made, *body[:position], call, *body[position + 1 :]]
    return True


def _trains(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(node))


class _Attributes(ast.NodeTransformer):
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names and isinstance(node.ctx, ast.Load):
            return ast.Attribute(ast.Name("self", ast.Load()), node.id, ast.Load())
        return node


def into_other_file(files: dict[str, str]) -> dict[str, str] | None:
    """Functions and classes that need nothing of their file move to one of their own."""
    result = dict(files)
    moved_any = False
    for path, text in files.items():
        if not path.endswith(".py") or "/" in path or "from ." in text:
            continue
        tree = ast.parse(text)
        moved = _movable(tree)
        if not moved:
            continue
        name = f"parts_of_{path.removesuffix('.py').replace('-', '_')}"
        imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        listed = ", ".join(n.name for n in moved)
        rest = [n for n in tree.body if n not in moved]
        position = 1 + max((i for i, n in enumerate(rest) if n in imports), default=-1)
        rest.insert(position, scopes.statement(f"from {name} import {listed}"))
        head: list[ast.stmt] = [*imports]
        result[f"{name}.py"] = ast.unparse(ast.Module([*head, *moved], []))
        result[path] = ast.unparse(ast.fix_missing_locations(ast.Module(rest, [])))
        moved_any = True
    return result if moved_any else None


def _movable(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    defined = [n for n in tree.body if isinstance(n, scopes.DEFINITIONS)]
    imported = scopes.stored(n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)))
    found = list(defined)
    while True:
        names = {n.name for n in found}
        known = imported | names | BUILTINS
        kept = [n for n in found if scopes.free(n) <= known]
        if len(kept) == len(found):
            return kept
        found = kept
