"""Names, imports and arguments written in another way."""

from __future__ import annotations

import ast
import builtins
import re

from bench.rewriting import scopes

# words that say what the author means, and nothing else in the program does: of which split data
# are, that labels are disturbed or a model is linear on purpose, whose statistics these are
MEANT = re.compile(
    r"tta|train|val|test|dev|eval|hold|held|noise|noisy|flip|deep_?linear|auto_?encod|reconstruct|unseen|usps",
    re.IGNORECASE,
)


def rename(tree: ast.Module) -> bool:
    """Variables get names that say nothing; a word that says what is meant stays in them."""
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(tree)):
        return False
    parameters = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    fixed = parameters | _class_names(tree) | {n.name for n in _definitions(tree)}
    imported = scopes.stored(
        n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)
    )
    kept = {"_", *dir(builtins)}  # `_` says: thrown away; a built-in that is hidden stays so
    names = sorted(_variables(tree) - fixed - imported - kept)
    stems = dict.fromkeys(_parts(name)[1] for name in names)
    plain = {stem: _letters(number) for number, stem in enumerate(stems)}
    new = {name: _neutral(name, plain) for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    return bool(new)


def _neutral(name: str, plain: dict[str, str]) -> str:
    """A name of letters; a number at its end stays, for it says that things are of one kind."""
    meant, stem, number = _parts(name)
    return (f"{meant.lower()}_" if meant else "") + plain[stem] + number


def _parts(name: str) -> tuple[str, str, str]:
    """The words of a name that say what is meant, the rest, and the number at its end."""
    meant = "_".join(MEANT.findall(name))
    rest = MEANT.sub("*", name)
    stem = rest.rstrip("0123456789")
    return meant, stem, rest[len(stem) :]


def _letters(number: int) -> str:
    return "q" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


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
    foreign = _foreign_names(tree)
    changed = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        function = own.get(name) if isinstance(node.func, ast.Name) else None
        names = _parameters(function) if function is not None else KNOWN.get(name, ())
        if name in _OPTIMIZERS:
            names = ("params",)
        if not node.args or len(node.args) > len(names) or name in foreign:
            continue
        keywords = [ast.keyword(n, a) for n, a in zip(names, node.args, strict=False)]
        if {k.arg for k in keywords} & {k.arg for k in node.keywords}:
            continue  # another library's function of the same name
        node.keywords = [*keywords, *node.keywords]
        node.args = []
        changed = True
    return changed


def _foreign_names(tree: ast.Module) -> set[str]:
    """The names that a file imports from elsewhere than torch."""
    found = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module)
    return {a.name for n in found if not str(n.module).startswith("torch") for a in n.names}


_OPTIMIZERS = frozenset({"Adam", "AdamW", "SGD", "RMSprop", "Adagrad"})


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    if function.args.posonlyargs or function.args.vararg or function.decorator_list:
        return ()
    return tuple(a.arg for a in function.args.args)


def settings_in_class(tree: ast.Module) -> bool:
    """Numbers given by keyword come from a data class of settings."""
    held = _as_settings(tree, "settings")
    if not held:
        return False
    lines = "".join(f"    {n}: {type(v).__name__} = {v!r}\n" for n, v in held.items())
    made = ast.parse(f"@dataclass\nclass Settings:\n{lines}settings = Settings()")
    position = scopes.after_imports(tree)
    tree.body[position:position] = made.body
    scopes.add_import(tree, "from dataclasses import dataclass")
    return True


def settings_of_command_line(tree: ast.Module) -> bool:
    """Numbers given by keyword are defaults of options."""
    if any(isinstance(n, ast.Attribute) and n.attr == "add_argument" for n in ast.walk(tree)):
        return False  # it has options of its own
    held = _as_settings(tree, "options")
    if not held:
        return False
    lines = "".join(
        f"_parser.add_argument('--{n}', type={type(v).__name__}, default={v!r})\n"
        for n, v in held.items()
    )
    text = f"_parser = argparse.ArgumentParser()\n{lines}options = _parser.parse_args()"
    position = scopes.after_imports(tree)
    tree.body[position:position] = ast.parse(text).body
    scopes.add_import(tree, "import argparse")
    return True


def _as_settings(tree: ast.Module, owner: str) -> dict[str, object]:
    """Take the numbers that are given by keyword from an object, and return them by name."""
    held: dict[str, object] = {}
    if owner in scopes.stored(tree.body):
        return held
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg is None:
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            name = f"{node.arg}_{len(held)}"
            held[name] = value
            node.value = ast.Attribute(ast.Name(owner, ast.Load()), name, ast.Load())
    return held


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
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            changed = _annotated(function.args) or changed
    return changed


def _annotated(parameters: ast.arguments) -> bool:
    found = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
    plain = [p for p in found if p.annotation is None and p.arg not in ("self", "cls")]
    for parameter in plain:
        parameter.annotation = ast.Name("object", ast.Load())
    return bool(plain)
