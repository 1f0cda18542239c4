"""Finds the operation that gave a non-finite loss in the loss's own graph, without a replay."""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import Any

import torch

from . import graph, places
from .caught import summary_of
from .reasons import explain
from .summaries import is_sound

# What a node kept of its input, by operation.
_KEPT = {
    "log": "self",
    "log2": "self",
    "log10": "self",
    "log1p": "self",
    "sqrt": "result",
    "rsqrt": "result",
    "exp": "result",
    "pow": "self",
    "div": "other",
    "acos": "self",
    "asin": "self",
    "log_softmax": "result",
    "softmax": "result",
}


def locate(loss: torch.Tensor, frame: FrameType | None) -> dict[str, Any]:
    """Return the operation deepest in the graph whose result cannot have been finite."""
    for node in reversed(graph.walk(loss)):
        key = _KEPT.get(node.name)
        tensor = node.saved(key) if key else None
        if tensor is None or not tensor.numel() or not tensor.is_floating_point():
            continue
        why = _why(node.name, key or "", tensor)
        if why:
            return {
                "phase": "loss",
                "op": node.name,
                "place": _only_call(node.name, frame),
                "inputs": [summary_of(tensor, "input" if key != "result" else "result")],
                "why": why,
            }
    return {}


def _why(op: str, key: str, tensor: torch.Tensor) -> str:
    if key == "result":
        if is_sound(tensor):
            return ""
        if op in {"softmax", "log_softmax"}:
            return f"a result of {op} is not a number" if bool(torch.isnan(tensor).any()) else ""
        return f"a result of {op} is not finite"
    if not is_sound(tensor):
        return ""  # it came in like that
    with torch.no_grad():
        if op == "div":
            return "a number divided by 0" if bool((tensor == 0).any()) else ""
        if op == "pow":
            return ""  # the exponent is not known
        return explain(op, [tensor], {}, tensor)


def _only_call(op: str, frame: FrameType | None) -> dict[str, Any] | None:
    """Return the line of the user's function that calls an operation, if there is just one."""
    if frame is None:
        return None
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    calls = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.strip("_") == op
        and code.co_firstlineno <= node.lineno <= frame.f_lineno
    ]
    if len(calls) != 1:
        return None
    inside = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= calls[0] <= (node.end_lineno or node.lineno)
    ]
    return {
        **places.place_of(frame),
        "line": calls[0],
        "code": lines[calls[0] - 1].strip(),
        "function": inside[-1] if inside else "<module>",
    }
