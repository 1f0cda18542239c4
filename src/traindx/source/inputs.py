"""Which local values of a function are made from the tensors that it is given."""

from __future__ import annotations

import ast

from traindx.source.module import Function

ABOUT = frozenset({"shape", "size", "device", "dtype", "ndim", "dim", "numel", "item", "tolist"})
ROUNDS = 3  # assignments may stand before what they use, in loops


def values_from_inputs(function: Function) -> set[str]:
    """Return the names that hold an input of a function or something computed from one.

    Sizes, devices and lengths say something about a tensor and are none.
    """
    spec = function.args
    required = spec.args[: len(spec.args) - len(spec.defaults)]  # a default is a setting
    found = {a.arg for a in (*spec.posonlyargs, *required)} - {"self", "cls"}
    assigns = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    for _ in range(ROUNDS):
        for node in assigns:
            if holds(node.value, found):
                for target in node.targets:
                    found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def holds(node: ast.AST, names: set[str]) -> bool:
    """Tell whether an expression is computed from the values of some names."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute) and node.attr in ABOUT:
        return False
    is_length = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("len", "range")
    if is_length or isinstance(node, ast.Lambda):
        return False
    return any(holds(child, names) for child in ast.iter_child_nodes(node))
