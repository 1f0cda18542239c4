"""Names, imports and arguments written in another way."""

from __future__ import annotations

import ast
import re

from bench.rewriting import scopes

SPLITS = re.compile(r"tta|train|val|test|dev|eval|hold|held", re.IGNORECASE)


def rename(tree: ast.Module) -> bool:
    """Variables get names that say nothing; a split that a name speaks of stays in it."""
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(tree)):
        return False
    parameters = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    fixed = parameters | _class_names(tree) | {n.name for n in _definitions(tree)}
    imported = scopes.stored(
        n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)
    )
    names = sorted(_variables(tree) - fixed - imported - {"_"})  # `_` says: thrown away
    new = {name: _neutral(name, i) for i, name in enumerate(names)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    return bool(new)


def _neutral(name: str, number: int) -> str:
    split = SPLITS.search(name)
    return f"{split.group().lower()}_v{number}" if split else f"v{number}"


def _variables(tree: ast.Module) -> set[str]:
    return {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _definitions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    return [n for n in ast.walk(tree) if isinstance(n, scopes.DEFINITIONS)]


def _class_names(tree: ast.Module) -> set[str]:
    """Names that a class body binds: they are attributes."""
    classes = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    return {name for c in classes for name in scopes.stored(c.body)}


def alias_imports(tree: ast.Module) -> bool:
    """`import torch.nn as nn` becomes `import torch.nn as _m3`, and so on."""
    new: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for item in node.names:
                old = item.asname or item.name
                if item.name != "*" and "." not in old:
                    item.asname = new.setdefault(old, f"lib{len(new)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    return bool(new)


KNOWN = {"DataLoader": ("dataset", "batch_size", "shuffle"), "cross_entropy": ("input", "target")}


def use_keywords(tree: ast.Module) -> bool:
    """Positional arguments of the program's own functions, and some of torch's, get their names."""
    own = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    changed = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        function = own.get(name) if isinstance(node.func, ast.Name) else None
        names = _parameters(function) if function is not None else KNOWN.get(name, ())
        if name in _OPTIMIZERS:
            names = ("params",)
        if not node.args or len(node.args) > len(names):
            continue
        keywords = [ast.keyword(n, a) for n, a in zip(names, node.args, strict=False)]
        if {k.arg for k in keywords} & {k.arg for k in node.keywords}:
            continue  # another library's function of the same name
        node.keywords = [*keywords, *node.keywords]
        node.args = []
        changed = True
    return changed


_OPTIMIZERS = frozenset({"Adam", "AdamW", "SGD", "RMSprop", "Adagrad"})


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    if function.args.posonlyargs or function.args.vararg or function.decorator_list:
        return ()
    return tuple(a.arg for a in function.args.args)


def settings_in_class(tree: ast.Module) -> bool:
    """Numbers given by keyword come from a data class of settings."""
    held: dict[str, object] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg is None:
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            name = f"{node.arg}_{len(held)}"
            held[name] = value
            node.value = ast.Attribute(ast.Name("settings", ast.Load()), name, ast.Load())
    if not held or "settings" in scopes.stored(tree.body):
        return False
    lines = "".join(f"    {n}: {type(v).__name__} = {v!r}\n" for n, v in held.items())
    made = ast.parse(f"@dataclass\nclass Settings:\n{lines}settings = Settings()")
    position = _after_imports(tree)
    tree.body[position:position] = made.body
    scopes.add_import(tree, "from dataclasses import dataclass")
    return True


def _after_imports(tree: ast.Module) -> int:
    position = 0
    for i, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or scopes.is_docstring(node):
            position = i + 1
        else:
            break
    return position


def annotate(tree: ast.Module) -> bool:
    """`x: object = value`, and parameters with types that say nothing."""
    changed = False
    for block in scopes.blocks(tree):
        for position, node in enumerate(block):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and (isinstance(target, ast.Name))
            ):
                note = ast.Name("object", ast.Load())
                block[position] = ast.AnnAssign(target, note, node.value, 1)
                changed = True
    for parameter in ast.walk(tree):
        if isinstance(parameter, ast.arg) and parameter.arg not in ("self", "cls"):
            parameter.annotation = parameter.annotation or ast.Name("object", ast.Load())
            changed = True
    return changed
