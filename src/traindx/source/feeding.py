"""What is done to a model's input on the way from the loader: arithmetic, noise, calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.source.module import Function, Module, key_of, literal

RANDOM = frozenset(
    {"randn_like", "rand_like", "randn", "rand", "normal", "randint", "randint_like", "uniform",
     "bernoulli", "random", "standard_normal"}
)  # fmt: skip
HARMLESS = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "long", "contiguous", "view", "reshape",
     "unsqueeze", "squeeze", "flatten", "permute", "transpose", "clone", "detach", "type",
     "requires_grad_"}
)  # fmt: skip
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
METHODS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
STATISTICS = ("mean", "std", "var", "mu", "sigma")
LEVELS = 8  # of one change upon another


@dataclass(frozen=True, slots=True)
class Changes:
    """The arithmetic with fixed numbers and the noise that an input goes through."""

    fixed: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    is_known: bool = True  # everything on the way was understood


def changes_of(module: Module, call: ast.Call) -> Changes:
    """Return what happens to the first input of a call within its loop or function."""
    if not call.args or isinstance(call.args[0], ast.Starred):
        return Changes(is_known=False)
    return _of(module, call.args[0], call, Changes(), LEVELS)


def _of(module: Module, node: ast.expr, before: ast.AST, so_far: Changes, levels: int) -> Changes:
    if levels == 0:
        return Changes(is_known=False)
    if isinstance(node, ast.Name):
        earlier = _last_change(module, node.id, before)
        if earlier is None:
            return so_far
        if _is_sometimes(module, earlier, before):
            return Changes(is_known=False)
        value = _as_expression(earlier, node.id)
        return so_far if value is None else _of(module, value, earlier, so_far, levels - 1)
    step = _step(node)
    if step is None:
        is_part = isinstance(node, (ast.Subscript, ast.Attribute))
        return so_far if is_part else Changes(is_known=False)
    inner, mark, is_noise = step
    fixed = so_far.fixed if is_noise or not mark else (mark, *so_far.fixed)
    noise = (mark, *so_far.noise) if is_noise else so_far.noise
    return _of(module, inner, before, Changes(fixed, noise), levels - 1)


def _step(node: ast.expr) -> tuple[ast.expr, str, bool] | None:
    """One change: what it is done to, its mark, and whether it is random."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sign = OPERATORS[type(node.op)]
        return _operand(node.left, sign, node.right) or (
            _operand(node.right, sign, node.left) if sign in "+*" else None
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, inner = node.func.attr, node.func.value
        if name in HARMLESS:
            return inner, "", False
        sign = METHODS.get(name.rstrip("_"), "")
        if sign and len(node.args) == 1:
            return _operand(inner, sign, node.args[0])
    return None


def _operand(inner: ast.expr, sign: str, other: ast.expr) -> tuple[ast.expr, str, bool] | None:
    number = literal(other)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return inner, f"{sign} {float(number):g}", False
    if _is_random(other):
        return inner, f"{sign} {ast.unparse(other)}", True
    name = (key_of(other) or "").rsplit(".", 1)[-1].lower()
    if any(word in STATISTICS for word in name.split("_")):
        return inner, f"{sign} {name}", False
    return None


def _is_random(node: ast.expr) -> bool:
    names = (key_of(n.func) or "" for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(n.rsplit(".", 1)[-1] in RANDOM for n in names)


def _last_change(module: Module, name: str, before: ast.AST) -> ast.stmt | None:
    """The statement that last bound a name before a place, in the same loop or function."""
    around: ast.AST = _loop_of(module, before) or module.tree
    own, place = module.statement_of(before), _position(before)
    found = (s for s in _bindings(around, name) if s is not own and s is not before)
    return max((s for s in found if _position(s) < place), key=_position, default=None)


def _is_sometimes(module: Module, statement: ast.stmt, before: ast.AST) -> bool:
    """Tell whether a statement runs under a condition that a later place does not."""
    shared = set(module.enclosing(before))
    return any(isinstance(n, ast.If) and n not in shared for n in module.enclosing(statement))


def _loop_of(module: Module, node: ast.AST) -> ast.AST | None:
    kinds = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
    return next((n for n in module.enclosing(node) if isinstance(n, kinds)), None)


def _bindings(around: ast.AST, name: str) -> Iterator[ast.stmt]:
    for node in ast.walk(around):
        if isinstance(node, ast.Assign):
            targets = [n for t in node.targets for n in ast.walk(t)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        else:
            continue
        if any(isinstance(n, ast.Name) and n.id == name for n in targets):
            yield node


def _as_expression(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives to a name; None where it takes a batch apart."""
    if isinstance(statement, ast.AugAssign):
        joined = ast.BinOp(statement.target, statement.op, statement.value)
        return ast.copy_location(joined, statement)
    if not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return None
    pairs = zip(target.elts, value.elts, strict=False)
    return next((v for t, v in pairs if isinstance(t, ast.Name) and t.id == name), None)


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def methods_of(cls: ast.ClassDef) -> dict[str, Function]:
    """Return the methods of a class by their names."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {n.name: n for n in cls.body if isinstance(n, kinds)}
