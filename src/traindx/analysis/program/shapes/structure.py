"""The structure of module classes: which attributes hold layers, where layers are made and used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes.signatures import ALIKE, SIGNATURES
from traindx.analysis.program.syntax import Function, Module, key_of

# layers of torch.nn without weights
BARE = ALIKE - {"PReLU"} | frozenset(
    k
    for k in SIGNATURES
    if "Pool" in k or "Pad" in k or "Upsampl" in k or "Pixel" in k
    or k in ("Flatten", "Unflatten", "Upsample", "GLU", "Unfold", "LocalResponseNorm")
)  # fmt: skip
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
# calls that find layers by other ways than their names
REFLECTION = frozenset(
    {"children", "modules", "named_children", "named_modules", "get_submodule", "getattr",
     "__getattr__", "eval", "exec", "vars", "locals", "globals", "setattr"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attribute:
    """An assignment of an attribute of `self`."""

    name: str
    node: ast.Assign | ast.AnnAssign
    value: ast.expr


def is_test_file(module: Module) -> bool:
    """Tell whether a file is a test: broken modules are meant there."""
    parts = module.path.replace("\\", "/").lower().split("/")
    is_named = parts[-1].startswith("test_") or parts[-1].endswith("_test.py")
    return is_named or bool({"tests", "testing"} & {*parts[:-1]})


def is_self_contained(project: Project, module: Module, cls: ast.ClassDef) -> bool:
    """Tell whether every parent of a class is nn.Module or at hand."""
    return all(
        name.startswith("torch.nn.") or project.find_class(module, name) is not None
        for name in project.bases(module, cls)
    )


def own_method(cls: ast.ClassDef, name: str) -> Function | None:
    """Return a method that a class defines itself."""
    found = (n for n in cls.body if isinstance(n, Function) and n.name == name)
    return next(found, None)


def attributes(function: ast.AST) -> Iterator[Attribute]:
    """Yield the assignments of attributes of `self` in a function, nested ones included."""
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            is_own = isinstance(target, ast.Attribute) and key_of(target.value) == "self"
            if is_own and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                yield Attribute(getattr(target, "attr", ""), node, node.value)


def layer_name(module: Module, node: ast.AST) -> str | None:
    """Return the name of the class of torch.nn that a call makes: `Linear`."""
    if not isinstance(node, ast.Call):
        return None
    name = module.qualified(node.func) or ""
    last = name.rsplit(".", 1)[-1]
    is_layer = name.startswith("torch.nn.") and last[:1].isupper()
    return last if is_layer and ".functional" not in name and ".init" not in name else None


def has_weights(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a call makes a module or parameter that training should change."""
    if not isinstance(node, ast.Call):
        return False
    name = layer_name(module, node)
    if name is not None:
        is_loss = name.endswith("Loss")
        if name in CONTAINERS:
            inside = (n for n in ast.walk(node) if n is not node)
            return any(has_weights(project, module, n) for n in inside)
        return (name in SIGNATURES or name == "Parameter") and name not in BARE and not is_loss
    found = project.find_class(module, module.qualified(node.func) or "")
    return found is not None and project.is_module(*found)


def uses_reflection(node: ast.AST) -> bool:
    """Tell whether code reaches attributes by other ways than their names."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            called = inner.func
            last = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if last in REFLECTION:
                return True
        if isinstance(inner, ast.Attribute) and inner.attr in ("_modules", "__dict__"):
            return True
    return False


def names_read(node: ast.AST) -> set[str]:
    """Return every attribute that code reads, and every text that may name one."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and _is_read(inner.ctx):
            found.add(inner.attr)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found.update(inner.value.split("."))
    return found


def _is_read(context: ast.expr_context) -> bool:
    return isinstance(context, (ast.Load, ast.Del))


def prefix_of(call: ast.Call) -> str:
    """Return what stands before a layer's name in the user's code: `nn.` or nothing."""
    text = ast.unparse(call.func)
    return text.rsplit(".", 1)[0] + "." if "." in text else ""
