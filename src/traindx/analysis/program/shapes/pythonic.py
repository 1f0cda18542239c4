"""Python's own functions, and those of math, numpy, functools and copy, on known values."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.shapes import iteration, names, truth
from traindx.analysis.program.shapes.sizes import Dim, is_dim, product
from traindx.analysis.program.shapes.values import (
    DICTS,
    LISTS,
    UNKNOWN,
    CallFrame,
    Partial,
    Ref,
    ShapedTensor,
    Super,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

Keywords = Mapping[str, Value]
NUMBERS: dict[str, Callable[..., Any]] = {
    "math.sqrt": math.sqrt,
    "math.log": math.log,
    "math.log2": math.log2,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.pow": math.pow,
    "math.prod": math.prod,
    "numpy.sqrt": math.sqrt,
    "numpy.log2": math.log2,
    "numpy.ceil": math.ceil,
    "numpy.floor": math.floor,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.float": float,
    "builtins.int": int,
}


def call(
    m: ShapeMachine,
    name: str,
    args: Sequence[Value],
    kwargs: Keywords,
    node: ast.expr,
    frame: CallFrame,
) -> Value:
    """Call a function that is not of torch."""
    if name == "builtins.super":
        return _super(args, frame)
    if name == "functools.partial" and args:
        return Partial(args[0], tuple(args[1:]), dict(kwargs))
    if name in ("copy.deepcopy", "copy.copy", "builtins.iter") and args:
        return args[0]
    if name in ("collections.OrderedDict", "builtins.dict"):
        return _mapping(m, args, kwargs)
    if name in ("math.prod", "numpy.prod") and args:
        return _product(m, args[0])
    if name in NUMBERS:
        return _number(name, args)
    if name == "builtins.map" and len(args) == 2:
        items = iteration.items_of(m, args[1])
        found = [m.call(args[0], (i,), {}, node, frame) for i in items or ()]
        return UNKNOWN if items is None else m.memory.new_list(found)
    rule = _BUILTINS.get(name.removeprefix("builtins."))
    return UNKNOWN if rule is None else rule(m, args, kwargs)


def _super(args: Sequence[Value], frame: CallFrame) -> Value:
    if frame.owner is None or frame.bound is None:
        return UNKNOWN
    return Super(frame.bound, frame.owner)


def _mapping(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    if not args:
        return m.memory.new("dict", dict(kwargs.items()))
    pairs = iteration.pairs_of(m, args[0])
    if pairs is None:
        items = iteration.items_of(m, args[0])
        members = [iteration.items_of(m, i) for i in items or ()]
        if items is None or not all(x is not None and len(x) == 2 for x in members):
            return UNKNOWN
        pairs = [(x[0], x[1]) for x in members if x is not None]
    keyed = all(isinstance(k, (str, int)) for k, _ in pairs)
    return m.memory.new("dict", dict([*pairs, *kwargs.items()])) if keyed else UNKNOWN


def _product(m: ShapeMachine, value: Value) -> Value:
    items = iteration.items_of(m, value)
    if items is None or not all(is_dim(i) for i in items):
        return UNKNOWN
    return product(tuple(i for i in items if is_dim(i)))


def _number(name: str, args: Sequence[Value]) -> Value:
    if name == "builtins.int" and len(args) == 1 and is_dim(args[0]):
        return args[0]
    if not args or not all(isinstance(a, (int, float)) for a in args):
        return UNKNOWN
    try:
        found = NUMBERS[name](*args)
    except (ArithmeticError, ValueError, TypeError):
        return UNKNOWN
    return found if isinstance(found, (int, float)) else UNKNOWN


def _range(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    if not all(isinstance(a, int) for a in args) or not 1 <= len(args) <= 3:
        return UNKNOWN
    numbers = [a for a in args if isinstance(a, int)]
    return UNKNOWN if len(numbers) == 3 and not numbers[2] else range(*numbers)


def _len(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    if args and isinstance(args[0], ShapedTensor):
        return m.size_at(args[0], 0)
    items = iteration.items_of(m, args[0]) if args else None
    return UNKNOWN if items is None else len(items)


def _enumerate(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    items = iteration.items_of(m, args[0]) if args else None
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if items is None or not isinstance(start, int):
        return UNKNOWN
    return tuple((start + i, item) for i, item in enumerate(items))


def _zip(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    columns = [iteration.items_of(m, a) for a in args]
    if any(c is None for c in columns):
        return UNKNOWN
    return tuple(zip(*(c for c in columns if c is not None), strict=False))


def _extreme(m: ShapeMachine, args: Sequence[Value], choose: Callable[..., Any]) -> Value:
    items = iteration.items_of(m, args[0]) if len(args) == 1 else list(args)
    numbers = [i for i in items or () if isinstance(i, (int, float))]
    if items is None or not numbers or len(numbers) < len(items):
        return UNKNOWN
    found: Value = choose(numbers)
    return found


def _sum(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    items = iteration.items_of(m, args[0]) if args else None
    if items is None or not all(is_dim(i) for i in items):
        return UNKNOWN
    total: Dim = 0
    for item in items:
        total = total + item if is_dim(item) else total
    return total


def _series(m: ShapeMachine, args: Sequence[Value], order: int = 1) -> Value:
    items = iteration.items_of(m, args[0]) if args else []
    return UNKNOWN if items is None else m.memory.new_list(items[::order])


def _tuple(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    items = iteration.items_of(m, args[0]) if args else []
    return UNKNOWN if items is None else tuple(items)


def _getattr(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    if len(args) > 1 and isinstance(args[1], str):
        node = ast.Attribute(ast.Name("_", ast.Load()), args[1], ast.Load())
        place = ast.copy_location(node, ast.Name("_", lineno=1, col_offset=0))
        return names.attribute(m, args[0], place, _nowhere(m))
    return UNKNOWN


def _nowhere(m: ShapeMachine) -> CallFrame:
    return CallFrame(m.project.modules[0])


def _setattr(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    if len(args) == 3 and isinstance(args[0], Ref):
        if isinstance(args[1], str):
            m.memory.set(args[0], args[1], args[2])
        else:
            m.memory.forget(args[0])
    return None


def _sorted(m: ShapeMachine, args: Sequence[Value], kwargs: Keywords) -> Value:
    items = iteration.items_of(m, args[0]) if args and not kwargs else None
    numbers = [i for i in items or () if isinstance(i, int)]
    whole = items is not None and len(numbers) == len(items)
    return m.memory.new_list(sorted(numbers)) if whole else UNKNOWN


_BUILTINS: dict[str, Callable[[Any, Sequence[Value], Keywords], Value]] = {
    "range": _range,
    "len": _len,
    "enumerate": _enumerate,
    "zip": _zip,
    "max": lambda m, a, k: _extreme(m, a, max),
    "min": lambda m, a, k: _extreme(m, a, min),
    "sum": _sum,
    "list": lambda m, a, k: _series(m, a),
    "reversed": lambda m, a, k: _series(m, a, -1),
    "tuple": _tuple,
    "getattr": _getattr,
    "setattr": _setattr,
    "sorted": _sorted,
    "print": lambda m, a, k: None,
    "bool": lambda m, a, k: _known(truth.of(a[0])) if a else False,
    "str": lambda m, a, k: str(a[0]) if a and isinstance(a[0], (int, str)) else UNKNOWN,
}


def _known(value: bool | None) -> Value:
    return UNKNOWN if value is None else value


def container_method(
    m: ShapeMachine, ref: Ref, name: str, args: Sequence[Value], kwargs: Keywords
) -> Value:
    """Call a method of a list, dictionary or container of layers."""
    record = m.memory.read(ref)
    if name in ("append", "add_module", "extend", "insert", "add") and record.kind in LISTS:
        return _grown(m, ref, name, args)
    if record.kind in DICTS:
        return _dict_method(m, ref, name, args)
    if name in ("to", "cuda", "train", "eval", "cpu", "apply", "requires_grad_"):
        return ref
    if name in ("children", "modules") and record.kind in LISTS:
        return ref if name == "children" else UNKNOWN
    if name in ("pop", "remove", "clear", "sort", "reverse"):
        return _shrunk(m, ref, name, args)
    return UNKNOWN


def _grown(m: ShapeMachine, ref: Ref, name: str, args: Sequence[Value]) -> Value:
    items = m.memory.items(ref)
    if items is None or not args:
        return None
    if name == "extend":
        more = iteration.items_of(m, args[0])
        if more is None:
            m.memory.forget(ref)
            return None
        items = [*items, *more]
    elif name == "insert":
        at = args[0]
        if not isinstance(at, int) or len(args) < 2:
            m.memory.forget(ref)
            return None
        items.insert(at, args[1])
    else:
        items = [*items, args[-1]]
    m.memory.write(ref, dict(enumerate(items)))
    return ref if m.memory.read(ref).kind != "list" else None


def _shrunk(m: ShapeMachine, ref: Ref, name: str, args: Sequence[Value]) -> Value:
    items = m.memory.items(ref)
    if name == "pop" and items and (not args or isinstance(args[0], int)):
        at = args[0] if args and isinstance(args[0], int) else -1
        if -len(items) <= at < len(items):
            value = items.pop(at)
            m.memory.write(ref, dict(enumerate(items)))
            return value
    m.memory.forget(ref)
    return UNKNOWN


def _dict_method(m: ShapeMachine, ref: Ref, name: str, args: Sequence[Value]) -> Value:
    pairs = iteration.pairs_of(m, ref)
    if name == "items":
        return UNKNOWN if pairs is None else tuple(pairs)
    if name in ("keys", "values"):
        at = 0 if name == "keys" else 1
        return UNKNOWN if pairs is None else tuple(p[at] for p in pairs)
    if name == "get" and pairs is not None and args and isinstance(args[0], (str, int)):
        fallback = args[1] if len(args) > 1 else None
        return dict(pairs).get(args[0], fallback)
    if name == "update" and args:
        more = iteration.pairs_of(m, args[0])
        if more is None:
            m.memory.forget(ref)
        else:
            m.memory.write(ref, {**m.memory.read(ref).fields, **dict(more)})
        return None
    if name in ("pop", "setdefault", "clear", "popitem"):
        m.memory.forget(ref)
    return UNKNOWN


def text_method(subject: Value, name: str, args: Sequence[Value]) -> Value:
    """Call a method of a text."""
    if isinstance(subject, str) and name in ("lower", "upper", "strip") and not args:
        found: Value = getattr(subject, name)()
        return found
    if isinstance(subject, str) and name in ("startswith", "endswith") and len(args) == 1:
        return getattr(subject, name)(args[0]) if isinstance(args[0], str) else UNKNOWN
    return UNKNOWN
