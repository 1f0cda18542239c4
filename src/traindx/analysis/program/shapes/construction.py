"""Building: layers of torch, containers, and objects of the project's own classes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes import calls, iteration, names
from traindx.analysis.program.shapes.functions import apply_function
from traindx.analysis.program.shapes.signatures import ALIKE, SIGNATURES, options
from traindx.analysis.program.shapes.values import (
    UNKNOWN,
    CallFrame,
    ClassRef,
    FunctionRef,
    Layer,
    Mismatch,
    Ref,
    Super,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
TRANSPARENT = frozenset(
    {"weight_norm", "spectral_norm", "DataParallel", "DistributedDataParallel",
     "remove_weight_norm", "convert_sync_batchnorm"}
)  # fmt: skip
Keywords = Mapping[str, Value]


def build(
    m: ShapeMachine,
    name: str,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Build what a class of torch.nn makes."""
    kind = name.rsplit(".", 1)[-1]
    if kind in CONTAINERS:
        return container(m, kind, args, kwargs)
    if kind in ("ParameterList", "Parameter"):
        value = args[0] if args else kwargs.get("data", UNKNOWN)
        return (
            value
            if kind == "ParameterList"
            else apply_function("Parameter", [value], {}, m.symbols)
        )
    if kind in TRANSPARENT:
        return args[0] if args else UNKNOWN
    known = kind in SIGNATURES or kind in ALIKE
    if not known or not isinstance(node, ast.Call) or name.startswith("torch.nn.utils."):
        return UNKNOWN
    plain = [_as_tuple(m, a) for a in args]
    named = {k: _as_tuple(m, v) for k, v in kwargs.items()}
    layer = Layer(kind, options(kind, plain, named), node, frame.module)
    _require_divisible(m, layer, node, frame)
    return layer


def _as_tuple(m: ShapeMachine, value: Value) -> Value:
    if isinstance(value, Ref) and m.memory.read(value).kind == "list":
        items = m.memory.items(value)
        return UNKNOWN if items is None else tuple(items)
    return value


DIVISIBLE = {
    "Conv1d": (("in_channels", "groups"), ("out_channels", "groups")),
    "Conv2d": (("in_channels", "groups"), ("out_channels", "groups")),
    "Conv3d": (("in_channels", "groups"), ("out_channels", "groups")),
    "GroupNorm": (("num_channels", "num_groups"),),
    "MultiheadAttention": (("embed_dim", "num_heads"),),
    "TransformerEncoderLayer": (("d_model", "nhead"),),
    "TransformerDecoderLayer": (("d_model", "nhead"),),
}


def _require_divisible(m: ShapeMachine, layer: Layer, node: ast.Call, frame: CallFrame) -> None:
    for whole, part in DIVISIBLE.get(layer.kind, ()):
        size, count = layer.number(whole), layer.number(part)
        if isinstance(size, int) and isinstance(count, int) and count > 0 and size % count:
            text = f"{layer.kind}: {whole} = {size} is not divisible by {part} = {count}"
            mismatch = Mismatch("division", f"a multiple of {count}", size, text)
            raise m.conflict(mismatch, node, frame, layer.kind, layer)


def container(m: ShapeMachine, kind: str, args: Sequence[Value], kwargs: Keywords) -> Value:
    """Build a Sequential, ModuleList or ModuleDict."""
    first = args[0] if args else kwargs.get("modules")
    pairs = iteration.pairs_of(m, first)
    if kind == "ModuleDict":
        return m.memory.new(kind, dict(pairs)) if pairs is not None else _unknown(m, kind, args)
    if kind == "Sequential" and pairs is not None and len(args) == 1:
        return m.memory.new_list([v for _, v in pairs], kind)
    if kind == "Sequential":
        return m.memory.new_list(args, kind)
    items = [] if first is None else iteration.items_of(m, first)
    return m.memory.new_list(items, kind) if items is not None else _unknown(m, kind, args)


def _unknown(m: ShapeMachine, kind: str, args: Sequence[Value]) -> Ref:
    ref = m.memory.new(kind, {})
    if args:
        m.memory.forget(ref)
    return ref


def instantiate(
    m: ShapeMachine,
    cls: ClassRef,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Make an object of a class of the project and run its `__init__`."""
    ref = m.memory.new("object", {}, cls)
    found = names.method(m, cls, "__init__")
    if found is not None:
        bound = FunctionRef(found.module, found.node, found.around, ref, found.owner)
        calls.call_function(m, bound, args, kwargs)
    elif "dataclass" in _decorator_names(cls.node):
        _fill_dataclass(m, ref, cls, args, kwargs)
    else:
        _init_outside(m, ref, cls, args, kwargs, node, frame)
    return ref


def _decorator_names(cls: ast.ClassDef) -> set[str]:
    targets = [d.func if isinstance(d, ast.Call) else d for d in cls.decorator_list]
    return {t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "") for t in targets}


def _fill_dataclass(
    m: ShapeMachine, ref: Ref, cls: ClassRef, args: Sequence[Value], kwargs: Keywords
) -> None:
    declared = [
        n.target.id
        for n in cls.node.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    ]
    given = dict(zip(declared, args, strict=False)) | dict(kwargs)
    for name in declared:
        value = given[name] if name in given else names.class_value(m, cls, name)
        m.memory.set(ref, name, value)


def _init_outside(
    m: ShapeMachine, ref: Ref, cls: ClassRef, args: Sequence[Value], kwargs: Keywords,
    node: ast.expr, frame: CallFrame,
) -> None:  # fmt: skip
    """Run the `__init__` of the base that torch provides."""
    base = names.outside_base(m, cls)
    if not base.startswith("torch.nn."):
        return
    made = build(m, base, args, kwargs, node, frame)
    if isinstance(made, Layer):
        m.memory.set(ref, "__layer__", made)
    elif isinstance(made, Ref):
        m.memory.set(ref, "__children__", made)


def call_super(
    m: ShapeMachine, subject: Super, name: str, args: Sequence[Value], kwargs: Keywords,
    node: ast.expr, frame: CallFrame,
) -> Value:  # fmt: skip
    """Call a method of a base that is not of the project."""
    if not isinstance(subject.bound, Ref):
        return UNKNOWN
    if name == "__init__":
        _init_outside(m, subject.bound, subject.owner, args, kwargs, node, frame)
        return None
    if name == "forward":
        return calls.call_outside_base(m, subject.bound, args, kwargs, node, frame)
    return UNKNOWN


def add_child(m: ShapeMachine, ref: Ref, value: Value) -> None:
    """Append a layer to a chain; in a subclass of Sequential an attribute is part of the chain."""
    children = m.memory.read(ref).fields.get("__children__")
    if not isinstance(children, Ref) or children == value:
        return
    if isinstance(value, (Layer, Ref)):
        m.memory.set(children, len(m.memory.read(children).fields), value)
    elif value is UNKNOWN:
        m.memory.forget(children)


def object_method(m: ShapeMachine, ref: Ref, name: str, args: Sequence[Value]) -> Value:
    """Call a method that every nn.Module has."""
    if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        if len(args) > 1 and isinstance(args[0], str):
            m.memory.set(ref, args[0], args[1])
            if "module" in name:
                add_child(m, ref, args[1])
        return None
    if name in calls.SAME_LAYER:
        return ref
    inner = m.memory.read(ref).fields.get("__children__")
    if name in ("append", "add") and isinstance(inner, Ref) and args:
        m.memory.set(inner, len(m.memory.read(inner).fields), args[0])
    return UNKNOWN
