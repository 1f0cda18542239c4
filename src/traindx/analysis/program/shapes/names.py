"""What names and attributes mean: local, around, of the project, of torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes.layers import weight_shape
from traindx.analysis.program.shapes.values import (
    TRAINING,
    UNKNOWN,
    CallFrame,
    ClassRef,
    FunctionRef,
    Layer,
    Named,
    Ref,
    Shape,
    ShapedTensor,
    ShapeMethod,
    SizesOf,
    Super,
    Value,
)
from traindx.analysis.program.syntax import Function, Module

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

BUILTINS = frozenset(
    {"range", "len", "enumerate", "zip", "int", "float", "max", "min", "sum", "list", "tuple",
     "dict", "reversed", "sorted", "super", "abs", "round", "isinstance", "getattr", "setattr",
     "hasattr", "print", "map", "str", "bool", "any", "all", "iter", "set"}
)  # fmt: skip
LIBRARY = ("torch", "torchvision", "math", "numpy", "functools", "collections", "copy", "typing")


def resolve(m: ShapeMachine, name: str, frame: CallFrame) -> Value:
    """Return what a name means in a frame."""
    for scope in (frame.names, frame.around):
        if name in scope:
            return scope[name]
    return of_module(m, frame.module, name)


def of_module(m: ShapeMachine, module: Module, name: str) -> Value:
    """Return what a name means at the top level of a file."""
    if name in module.aliases:
        return _imported(m, module, name)
    if name in module.classes:
        return ClassRef(module, module.classes[name])
    if name in module.functions:
        return FunctionRef(module, module.functions[name])
    bound = m.project.bindings(module.tree).get(name, [])
    if len(bound) == 1 and (module.path, name) not in m.resolving:
        return _constant(m, module, name, bound[0])
    return Named(f"builtins.{name}") if name in BUILTINS and not bound else UNKNOWN


def _constant(m: ShapeMachine, module: Module, name: str, node: ast.expr) -> Value:
    """A global that is assigned once; one that is unpacked or rebound in a loop is left alone."""
    parent = module.parents.get(node)
    is_simple = isinstance(parent, (ast.Assign, ast.AnnAssign)) and module.function_of(node) is None
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    if not is_simple or any(isinstance(t, ast.Tuple) for t in targets):
        return UNKNOWN
    m.resolving.add((module.path, name))
    value = m.evaluate(node, CallFrame(module))
    m.resolving.discard((module.path, name))
    return value


def _imported(m: ShapeMachine, module: Module, name: str) -> Value:
    dotted = module.aliases[name]
    if dotted.split(".")[0] in LIBRARY:
        return Named(dotted)
    *homes, last = dotted.split(".")
    for part in reversed(homes):
        home = m.project.by_name.get(part)
        if home is not None and home is not module:
            return of_module(m, home, last)
    return Named(dotted)


def attribute(m: ShapeMachine, owner: Value, node: ast.Attribute, frame: CallFrame) -> Value:
    """Return an attribute of a value."""
    name = node.attr
    if isinstance(owner, Named):
        return _of_named(m, owner, name)
    if isinstance(owner, Ref):
        return of_object(m, owner, name, node, frame)
    if isinstance(owner, ShapedTensor):
        return _of_tensor(m, owner, name)
    if isinstance(owner, Layer):
        return _of_layer(owner, name)
    if isinstance(owner, Super):
        found = method(m, owner.owner, name, after=True)
        return _bound(found, owner.bound) if found is not None else ShapeMethod(owner, name)
    if isinstance(owner, ClassRef):
        found = method(m, owner, name)
        return found if found is not None else class_value(m, owner, name)
    if isinstance(owner, (str, SizesOf)):
        return ShapeMethod(owner, name)
    return UNKNOWN


def _of_named(m: ShapeMachine, owner: Named, name: str) -> Value:
    home = m.project.by_name.get(owner.name.rsplit(".", 1)[-1])
    if home is not None and owner.name.split(".")[0] not in LIBRARY:
        return of_module(m, home, name)
    return Named(f"{owner.name}.{name}")


def _of_tensor(m: ShapeMachine, tensor: ShapedTensor, name: str) -> Value:
    if name == "shape":
        return SizesOf(tensor)
    if name == "ndim":
        return UNKNOWN if tensor.shape.rank is None else tensor.shape.rank
    if name in ("T", "mT"):
        sizes, is_open = tensor.shape.sizes, tensor.shape.is_open
        if len(sizes) < 2 or (name == "T" and (is_open or len(sizes) != 2)):
            return ShapedTensor()
        return ShapedTensor(Shape((*sizes[:-2], sizes[-1], sizes[-2]), is_open))
    if name in ("data", "real"):
        return tensor
    if name in ("device", "dtype", "grad", "requires_grad", "is_cuda", "layout"):
        return UNKNOWN
    return ShapeMethod(tensor, name)


def _of_layer(layer: Layer, name: str) -> Value:
    if name in layer.options:
        return layer.options[name]
    if name == "weight":
        return ShapedTensor(weight_shape(layer))
    if name == "bias":
        return ShapedTensor()
    return layer if name in ("forward", "module") else ShapeMethod(layer, name)


def of_object(m: ShapeMachine, ref: Ref, name: str, node: ast.Attribute, frame: CallFrame) -> Value:
    """Return an attribute of an object or container of the project."""
    record = m.memory.read(ref)
    if record.kind != "object":
        return ShapeMethod(ref, name)
    if name in record.fields:
        return UNKNOWN if name in m.replaced else record.fields[name]
    if name == "training":
        return TRAINING
    if record.cls is None:
        return UNKNOWN
    found = method(m, record.cls, name)
    if found is not None:
        if _is_property(found.node):
            return m.call(_bound(found, ref), (), {}, node, frame)
        return found if _is_static(found.node) else _bound(found, ref)
    value = class_value(m, record.cls, name)
    return ShapeMethod(ref, name) if value is UNKNOWN else value


def _bound(function: FunctionRef, to: Value) -> FunctionRef:
    return FunctionRef(function.module, function.node, function.around, to, function.owner)


def _decorators(node: ast.AST) -> set[str]:
    found = set()
    for item in getattr(node, "decorator_list", []):
        target = item.func if isinstance(item, ast.Call) else item
        found.add(target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", ""))
    return found


def _is_property(node: ast.AST) -> bool:
    return bool(_decorators(node) & {"property", "cached_property"})


def _is_static(node: ast.AST) -> bool:
    return "staticmethod" in _decorators(node)


def lineage(m: ShapeMachine, cls: ClassRef) -> Iterator[ClassRef]:
    """Yield a class and its parents in the project, nearest first."""
    pending, seen = [cls], set()
    while pending:
        current = pending.pop(0)
        if current.node in seen:
            continue
        seen.add(current.node)
        yield current
        for base in current.node.bases:
            name = current.module.qualified(base) or ""
            if name.split(".")[0] in LIBRARY:
                continue
            found = m.project.find_class(current.module, name)
            if found is not None:
                pending.append(ClassRef(*found))


def outside_base(m: ShapeMachine, cls: ClassRef) -> str:
    """Return the dotted name of the first base that is not of the project."""
    for current in lineage(m, cls):
        for base in current.node.bases:
            name = current.module.qualified(base) or ""
            if m.project.find_class(current.module, name) is None or name.startswith("torch."):
                return name
    return ""


def method(m: ShapeMachine, cls: ClassRef, name: str, *, after: bool = False) -> FunctionRef | None:
    """Find a method in a class or its parents; `after` leaves out the class itself."""
    for number, current in enumerate(lineage(m, cls)):
        if after and number == 0:
            continue
        for node in current.node.body:
            if isinstance(node, Function) and node.name == name:
                return FunctionRef(current.module, node, owner=current)
    return None


def class_value(m: ShapeMachine, cls: ClassRef, name: str) -> Value:
    """Return an attribute that a class body assigns."""
    for current in lineage(m, cls):
        for node in current.node.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            target = node.target if isinstance(node, ast.AnnAssign) else target
            if isinstance(target, ast.Name) and target.id == name:
                value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
                return UNKNOWN if value is None else m.evaluate(value, CallFrame(current.module))
    return UNKNOWN
