"""Source that builds a model again: its constructor call, or its layers one by one."""

from __future__ import annotations

import ast
import inspect
import sys
from typing import Any

import torch

from .extraction import CannotExtract, Extraction, literal

_NOT_KNOWN = object()


def model_source(model: Any, extraction: Extraction) -> str:
    """Return an expression that builds a model, and extract what it refers to."""
    if type(model).__module__.startswith("torch.nn."):
        return layer_source(model)
    kind = type(model)
    module = sys.modules.get(kind.__module__)
    if module is None or vars(module).get(kind.__name__) is not kind:
        raise CannotExtract("the class is not at the top of its module")
    home = extraction.file(module)
    extraction.add(kind.__name__, home)
    return _constructor(kind, extraction)


def layer_source(layer: Any) -> str:
    """Return an expression that builds a standard layer like this one, checked on no memory."""
    kind = type(layer)
    if not kind.__module__.startswith("torch.nn.modules."):
        raise CannotExtract("not a standard layer")
    if kind in (torch.nn.Sequential, torch.nn.ModuleList):
        parts = [layer_source(child) for child in layer.children()]
        if [name for name, _ in layer.named_children()] != [str(i) for i in range(len(parts))]:
            raise CannotExtract("named layers")
        inner = ", ".join(parts)
        return f"torch.nn.{kind.__name__}({inner if kind is torch.nn.Sequential else f'[{inner}]'})"
    options = []
    for name, parameter in list(inspect.signature(kind.__init__).parameters.items())[1:]:
        if name in {"device", "dtype"}:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(layer, name, parameter.default)
        if name in {"bias", "in_proj_bias"}:
            value = value is not None and value is not False
        text = literal(value)
        if not text:
            raise CannotExtract(f"{name} of {kind.__name__}")
        options.append(f"{name}={text}")
    source = f"torch.nn.{kind.__name__}({', '.join(options)})"
    _check(source, layer)
    return source


def _check(source: str, layer: Any) -> None:
    with torch.device("meta"):
        twin = eval(source, {"torch": torch})
    shapes = [(name, tensor.shape) for name, tensor in layer.state_dict().items()]
    if repr(twin) != repr(layer):
        raise CannotExtract("it is not the same layer")
    if [(name, tensor.shape) for name, tensor in twin.state_dict().items()] != shapes:
        raise CannotExtract("it is not the same layer")


def _constructor(kind: type[Any], extraction: Extraction) -> str:
    """Return the one call of a class in the user's files, with values that are known."""
    calls: dict[str, str] = {}
    for module in (sys.modules.get("__main__"), sys.modules.get(kind.__module__)):
        try:
            file = extraction.file(module)
        except (CannotExtract, OSError, SyntaxError):
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and _last_name(node.func) == kind.__name__:
                calls[ast.dump(node)] = _call_source(
                    node, kind.__name__, vars(module), file, extraction
                )
    if len(calls) != 1:
        raise CannotExtract("not exactly one constructor call")
    return next(iter(calls.values()))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _call_source(
    call: ast.Call, name: str, names: dict[str, Any], file: Any, extraction: Extraction
) -> str:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        raise CannotExtract("arguments that are not written out")
    parts = [_argument(a, names, file, extraction) for a in call.args]
    parts += [f"{k.arg}={_argument(k.value, names, file, extraction)}" for k in call.keywords]
    return f"{name}({', '.join(parts)})"


def _argument(node: ast.expr, names: dict[str, Any], file: Any, extraction: Extraction) -> str:
    try:
        return repr(ast.literal_eval(node))
    except ValueError:
        pass
    text = literal(_value(node, names))
    if text:
        return text
    if isinstance(node, ast.Name) and node.id in file.top:
        extraction.add(node.id, file)
        return node.id
    if isinstance(node, ast.Call):  # a layer or a configuration made in place
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in file.top:
            extraction.add(root.id, file)
            return _call_source(node, ast.unparse(node.func), names, file, extraction)
    raise CannotExtract("an argument that is not known")


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of a name or of an attribute of one; what is not known is no literal."""
    if isinstance(node, ast.Name):
        return names.get(node.id, _NOT_KNOWN)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        held = getattr(owner, "__dict__", None)
        return held.get(node.attr, _NOT_KNOWN) if isinstance(held, dict) else _NOT_KNOWN
    return _NOT_KNOWN
