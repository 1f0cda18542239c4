"""Functions of one number, evaluated from their source without running it.

A small part of Python and torch is understood: arithmetic, comparisons, `where`, `clamp` and the
usual activations. Anything else raises `Unknown`, and nothing is said about the function.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from traindx.source.module import Function

Values = Any  # an array, a number, or a tuple of these


class Unknown(Exception):
    """Something that is not understood."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.BitAnd: np.logical_and, ast.BitOr: np.logical_or,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "tanh": np.tanh, "abs": np.abs, "neg": np.negative, "square": np.square,
    "relu": lambda x: np.maximum(x, 0.0), "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "sin": np.sin, "cos": np.cos, "sign": np.sign, "softplus": lambda x: np.log1p(np.exp(x)),
    "zeros_like": np.zeros_like, "ones_like": np.ones_like,
}  # fmt: skip
_SAME = frozenset({"clone", "float", "to", "type_as", "contiguous", "detach", "double", "type"})


def values_of(
    function: Function, given: Mapping[str, Values], saved: dict[str, Values]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what a function of numbers returns; what it keeps on its context goes into `saved`."""
    context = function.args.args[0].arg if function.args.args else ""
    names = dict(given)
    for statement in function.body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            found = _value(statement.value, names, saved, context)
            return np.asarray(found, dtype=np.float64)
        _run(statement, names, saved, context)
    raise Unknown


def _run(
    statement: ast.stmt, names: dict[str, Values], saved: dict[str, Values], context: str
) -> None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Constant):
        return
    if isinstance(call, ast.Call) and ast.unparse(call.func) == f"{context}.save_for_backward":
        kept = tuple(_value(a, names, saved, context) for a in call.args)
        saved["saved_tensors"] = kept
        return
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise Unknown
    target, value = statement.targets[0], _value(statement.value, names, saved, context)
    if isinstance(target, ast.Name):
        names[target.id] = value
    elif isinstance(target, ast.Tuple) and isinstance(value, tuple):
        for part, held in zip(target.elts, value, strict=False):
            if not isinstance(part, ast.Name):
                raise Unknown
            names[part.id] = held
    elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == context:
        saved[target.attr] = value
    else:
        raise Unknown


def _value(
    node: ast.expr, names: Mapping[str, Values], saved: Mapping[str, Values], context: str
) -> Values:
    def of(part: ast.expr) -> Values:
        return _value(part, names, saved, context)

    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == context:
        if node.attr in saved:
            return saved[node.attr]
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_number(of(node.left)), _number(of(node.right)))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(of(node.operand))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return np.logical_not(of(node.operand))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return _COMPARE[type(node.ops[0])](of(node.left), of(node.comparators[0]))
    elif isinstance(node, ast.Call):
        return _called(node, of, names)
    raise Unknown


def _number(value: Values) -> Values:
    is_flag = isinstance(value, np.ndarray) and value.dtype == bool
    return value.astype(np.float64) if is_flag else value


def _called(
    call: ast.Call, of: Callable[[ast.expr], Values], names: Mapping[str, Values]
) -> Values:
    if not isinstance(call.func, ast.Attribute):
        raise Unknown
    name, owner = call.func.attr.removesuffix("_"), ast.unparse(call.func.value)
    is_library = owner.split(".")[0] in ("torch", "F", "nn") and owner not in names
    operands = ([] if is_library else [call.func.value]) + call.args
    if name in _SAME and operands:
        return of(operands[0])
    given = [of(a) for a in operands]
    options = {k.arg: of(k.value) for k in call.keywords if k.arg is not None}
    if name in ("clamp", "clip", "clamp_min", "clamp_max") and given:
        low = options.get("min", given[1] if len(given) > 1 and name != "clamp_max" else -np.inf)
        top = given[1] if len(given) > 1 else np.inf
        high = options.get("max", top if name == "clamp_max" else np.inf)
        high = given[2] if len(given) > 2 else high
        return np.clip(given[0], low, high)
    if name == "where" and is_library and len(given) == 3:
        return np.where(given[0], _number(given[1]), _number(given[2]))
    if name in ("mul", "add", "sub", "div") and len(given) == 2 and not options:
        kind = {"mul": ast.Mult, "add": ast.Add, "sub": ast.Sub, "div": ast.Div}[name]
        return _BINARY[kind](_number(given[0]), _number(given[1]))
    if name in _PLAIN and len(given) == 1 and not options:
        return _PLAIN[name](given[0])
    raise Unknown
