"""Calls: of layers, containers, the project's functions and classes, and what torch offers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.shapes import construction, names, pythonic, windows
from traindx.analysis.program.shapes.functions import apply_function
from traindx.analysis.program.shapes.layers import apply_layer
from traindx.analysis.program.shapes.signatures import AS_LAYER, options
from traindx.analysis.program.shapes.values import (
    LISTS,
    UNKNOWN,
    CallFrame,
    ClassRef,
    FunctionRef,
    GiveUp,
    Layer,
    Mismatch,
    Named,
    Partial,
    Ref,
    Shape,
    ShapedTensor,
    ShapeMethod,
    SizesOf,
    Super,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

FUNCTION_HOMES = (
    "torch.", "torch.nn.functional.", "torch.Tensor.", "torch.linalg.", "torch.special.",
)  # fmt: skip
SAME_LAYER = frozenset(
    {"to", "cuda", "cpu", "float", "half", "double", "train", "eval", "requires_grad_", "apply",
     "share_memory", "bfloat16", "type", "to_empty"}
)  # fmt: skip
Keywords = Mapping[str, Value]


def call(
    m: ShapeMachine,
    callee: Value,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Return the result of a call."""
    if isinstance(callee, Layer):
        return call_layer(m, callee, args, kwargs, node, frame)
    if isinstance(callee, Ref):
        return _call_object(m, callee, args, kwargs, node, frame)
    if isinstance(callee, FunctionRef):
        return call_function(m, callee, args, kwargs)
    if isinstance(callee, ClassRef):
        return construction.instantiate(m, callee, args, kwargs, node, frame)
    if isinstance(callee, ShapeMethod):
        return _call_method(m, callee, args, kwargs, node, frame)
    if isinstance(callee, Partial):
        together = {**callee.kwargs, **kwargs}
        return m.call(callee.callee, (*callee.args, *args), together, node, frame)
    if isinstance(callee, Named):
        return _call_named(m, callee.name, args, kwargs, node, frame)
    return UNKNOWN


def call_layer(
    m: ShapeMachine,
    layer: Layer,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Apply a layer and note the shapes around it."""
    try:
        found = apply_layer(layer, args, kwargs, m.symbols)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, layer.kind, layer) from None
    m.record(node, frame, layer.kind, args, found, layer)
    return found


def _call_object(
    m: ShapeMachine,
    ref: Ref,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    record = m.memory.read(ref)
    if record.kind == "Sequential":
        return _call_chain(m, ref, args, node, frame)
    if record.kind != "object" or record.cls is None:
        return UNKNOWN
    for name in ("forward", "__call__"):
        found = names.method(m, record.cls, name)
        if found is not None:
            bound = FunctionRef(found.module, found.node, found.around, ref, found.owner)
            return call_function(m, bound, args, kwargs)
    return call_outside_base(m, ref, args, kwargs, node, frame)


def call_outside_base(
    m: ShapeMachine,
    ref: Ref,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Run the forward that a class inherits from a layer or container of torch."""
    fields = m.memory.read(ref).fields
    layer, children = fields.get("__layer__"), fields.get("__children__")
    if isinstance(layer, Layer):
        return call_layer(m, layer, args, kwargs, node, frame)
    if isinstance(children, Ref) and m.memory.read(children).kind == "Sequential":
        return _call_chain(m, children, args, node, frame)
    return UNKNOWN


def _call_chain(
    m: ShapeMachine, ref: Ref, args: Sequence[Value], node: ast.expr, frame: CallFrame
) -> Value:
    layers = m.memory.items(ref)
    if layers is None or len(args) != 1:
        return UNKNOWN
    value: Value = args[0]
    for layer in layers:
        value = m.call(layer, (value,), {}, node, frame)
    return value


def call_function(
    m: ShapeMachine, function: FunctionRef, args: Sequence[Value], kwargs: Keywords
) -> Value:
    """Run a function of the project."""
    node = function.node
    if function.bound is not None:
        args = (function.bound, *args)
    frame = CallFrame(
        function.module, {}, function.around, function.owner,
        function.bound if function.bound is not None else None,
    )  # fmt: skip
    frame.names = bind(m, function, args, kwargs)
    if isinstance(node, ast.Lambda):
        return m.evaluate(node.body, frame)
    if isinstance(node, ast.AsyncFunctionDef) or _is_generator(node):
        return UNKNOWN
    m.depth += 1
    status = m.run(node.body, frame)
    m.depth -= 1
    if status == "next":
        frame.returns.append(None)
    elif not frame.returns and not m.unsure:
        raise GiveUp(f"line {node.lineno}: {node.name} raises an exception")
    result: Value = frame.returns[0] if frame.returns else UNKNOWN
    for other in frame.returns[1:]:
        result = m.memory.join(result, other)
    return result


@lru_cache(maxsize=4096)
def _is_generator(node: ast.AST) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


def bind(
    m: ShapeMachine, function: FunctionRef, args: Sequence[Value], kwargs: Keywords
) -> dict[str, Value]:
    """Give a function's parameters their values; what is not given is unknown."""
    spec = function.node.args
    home = CallFrame(function.module, {}, function.around, function.owner)
    positional = [*spec.posonlyargs, *spec.args]
    bound: dict[str, Value] = {a.arg: UNKNOWN for a in (*positional, *spec.kwonlyargs)}
    first = len(positional) - len(spec.defaults)
    for parameter, default in zip(positional[first:], spec.defaults, strict=True):
        if parameter.arg not in kwargs and positional.index(parameter) >= len(args):
            bound[parameter.arg] = m.evaluate(default, home)
    for parameter, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if keyword_default is not None:
            bound[parameter.arg] = m.evaluate(keyword_default, home)
    bound.update({p.arg: a for p, a in zip(positional, args, strict=False)})
    bound.update({k: v for k, v in kwargs.items() if k in bound})
    if spec.vararg is not None:
        bound[spec.vararg.arg] = tuple(args[len(positional) :])
    if spec.kwarg is not None:
        extra: dict[object, Value] = {k: v for k, v in kwargs.items() if k not in bound}
        bound[spec.kwarg.arg] = m.memory.new("dict", extra)
    return bound


def _call_named(
    m: ShapeMachine,
    name: str,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    last = name.rsplit(".", 1)[-1]
    if name.startswith("builtins.") or not name.startswith("torch"):
        return pythonic.call(m, name, args, kwargs, node, frame)
    if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
        return construction.build(m, name, args, kwargs, node, frame)
    if name.startswith("torch.utils.checkpoint") and args:
        return m.call(args[0], args[1:], {}, node, frame)
    if last == "compile" and args:
        return args[0]
    if any(name == home + last for home in FUNCTION_HOMES):
        return _call_torch(m, last, args, kwargs, node, frame)
    return UNKNOWN


def _call_torch(
    m: ShapeMachine,
    name: str,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    plain = [_plain(m, a) for a in args]
    named = {k: _plain(m, v) for k, v in kwargs.items()}
    if name in AS_LAYER and isinstance(node, ast.Call) and plain:
        kind = AS_LAYER[name]
        layer = Layer(kind, options(kind, plain[1:], named), node, frame.module)
        return _functional(m, layer, plain[0], node, frame)
    if name.startswith("conv") and isinstance(node, ast.Call):
        return _convolution(m, name, plain, named, node, frame)
    try:
        found = apply_function(name, plain, named, m.symbols)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, name) from None
    m.record(node, frame, name, [*_tensors(plain), *_tensors(list(named.values()))], found)
    return found


def _functional(
    m: ShapeMachine, layer: Layer, value: Value, node: ast.Call, frame: CallFrame
) -> Value:
    """Apply a function that does what a layer does; there is no layer to blame."""
    try:
        found = apply_layer(layer, (value,), {}, m.symbols)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, layer.kind) from None
    m.record(node, frame, layer.kind, (value,), found, layer)
    return found


def _convolution(
    m: ShapeMachine,
    name: str,
    args: list[Value],
    kwargs: Keywords,
    node: ast.Call,
    frame: CallFrame,
) -> Value:
    """F.conv2d(x, weight, bias, stride …): the weight tells channels and kernel."""
    weight = args[1] if len(args) > 1 else kwargs.get("weight")
    is_known = isinstance(weight, ShapedTensor) and len(weight.shape.sizes) >= 3
    if "transpose" in name or not isinstance(weight, ShapedTensor) or not is_known:
        return ShapedTensor()
    if weight.shape.is_open or not name[-2:-1].isdigit():
        return ShapedTensor()
    keys = ("stride", "padding", "dilation", "groups")
    defaults: tuple[Value, ...] = (1, 0, 1, 1)
    given = dict(zip(keys, (*args[3:], *defaults[len(args[3:]) :]), strict=False))
    given |= {k: v for k, v in kwargs.items() if k in keys}
    out, inner, *kernel = weight.shape.sizes
    groups = given["groups"]
    if not isinstance(groups, int):
        return ShapedTensor()
    chosen = {"in_channels": inner * groups, "out_channels": out, "kernel_size": tuple(kernel)}
    layer = Layer(f"Conv{name[-2:]}", {**chosen, **given}, node, frame.module)
    return _functional(m, layer, args[0] if args else UNKNOWN, node, frame)


def _tensors(values: Sequence[Value]) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if isinstance(value, tuple):
            found.extend(_tensors(value))
        elif isinstance(value, ShapedTensor):
            found.append(value)
    return found


def _plain(m: ShapeMachine, value: Value) -> Value:
    """Return lists and sizes as tuples, as the functions of torch take either."""
    if isinstance(value, SizesOf):
        return UNKNOWN if value.tensor.shape.is_open else value.tensor.shape.sizes
    if isinstance(value, Ref) and m.memory.read(value).kind in LISTS:
        items = m.memory.items(value)
        return UNKNOWN if items is None else tuple(_plain(m, i) for i in items)
    return value


def _call_method(
    m: ShapeMachine, method: ShapeMethod, args: Sequence[Value], kwargs: Keywords, node: ast.expr,
    frame: CallFrame,
) -> Value:  # fmt: skip
    subject, name = method.subject, method.name
    if isinstance(subject, ShapedTensor):
        return _tensor_method(m, subject, name, args, kwargs, node, frame)
    if isinstance(subject, Layer):
        return subject if name in SAME_LAYER else UNKNOWN
    if isinstance(subject, Super):
        return construction.call_super(m, subject, name, args, kwargs, node, frame)
    if isinstance(subject, Ref):
        if m.memory.read(subject).kind == "object":
            return construction.object_method(m, subject, name, args)
        return pythonic.container_method(m, subject, name, args, kwargs)
    if isinstance(subject, SizesOf) and name == "numel":
        return apply_function("numel", (subject.tensor,), {}, m.symbols)
    return pythonic.text_method(subject, name, args)


def _tensor_method(
    m: ShapeMachine, tensor: ShapedTensor, name: str, args: Sequence[Value], kwargs: Keywords,
    node: ast.expr, frame: CallFrame,
) -> Value:  # fmt: skip
    if name in ("size", "dim", "ndimension"):
        if name != "size":
            return UNKNOWN if tensor.shape.rank is None else tensor.shape.rank
        index = args[0] if args else kwargs.get("dim")
        if index is None:
            return SizesOf(tensor)
        return size_of(m, tensor, index, node, frame)
    if name in ("tolist", "item"):
        return UNKNOWN
    if name == "unfold":
        places = ("dimension", "size", "step")
        given = (*args, *(kwargs.get(n, UNKNOWN) for n in places[len(args) :]))
        return windows.slid(tensor, given[:3], m.symbols)
    if name in ("new_tensor", "numpy", "index_select", "masked_select", "nonzero"):
        return _selected(tensor, name, args)
    return _call_torch(m, name, (tensor, *args), kwargs, node, frame)


def size_of(
    m: ShapeMachine, tensor: ShapedTensor, index: Value, node: ast.expr, frame: CallFrame
) -> Value:
    """Return one size of a tensor; a dimension that it does not have is a conflict."""
    if not isinstance(index, int):
        return UNKNOWN
    try:
        return m.size_at(tensor, index)
    except Mismatch as mismatch:
        raise m.conflict(mismatch, node, frame, "size") from None


def _selected(tensor: ShapedTensor, name: str, args: Sequence[Value]) -> Value:
    if name == "index_select" and len(args) == 2 and isinstance(args[1], ShapedTensor):
        at, index = args[0], args[1].shape
        known = isinstance(at, int) and not tensor.shape.is_open and index.rank == 1
        if known and isinstance(at, int) and -len(tensor.shape.sizes) <= at:
            sizes = list(tensor.shape.sizes)
            sizes[at] = index.sizes[0]
            return ShapedTensor(Shape(tuple(sizes)))
    return ShapedTensor()
