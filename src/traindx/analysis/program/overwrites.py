"""Where code changes a tensor in place, and the same change written out of place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.patches import Edit, replacing
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module, key_of, literal

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@",
    ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
# methods with an underscore that change no value, or none that backward needs
HARMLESS = frozenset({"requires_grad_", "detach_", "zero_grad_", "share_memory_", "retain_grad_"})
ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
# the functions that make the output which an autograd node is named after
MAKERS = {
    "addmm": {"linear"}, "t": {"linear"}, "mm": {"linear", "mm", "matmul"},
    "convolution": {"conv1d", "conv2d", "conv3d"}, "mkldnnconvolution": {"conv2d"},
    "cudnnconvolution": {"conv1d", "conv2d", "conv3d"}, "nativebatchnorm": {"batchnorm2d"},
    "cudnnbatchnorm": {"batchnorm1d", "batchnorm2d"}, "nativedropout": {"dropout"},
    "safesoftmax": {"softmax"}, "hardtanh": {"hardtanh", "relu6"}, "clampmin": {"clamp", "relu"},
}  # fmt: skip
NODE = re.compile(r"^(\w+?)(?:Backward)?\d*$")


@dataclass(frozen=True, eq=False)
class Overwrite:
    """One change in place: of which value, by which statement, and its repair."""

    module: Module
    statement: ast.stmt
    target: str
    text: str
    edit: Edit | None = None


def overwrites_in(module: Module, scope: ast.AST) -> list[Overwrite]:
    """Return the changes in place within a scope, in order; nested functions left out."""
    found = [o for s in _statements(scope) for o in _overwrites(module, s)]
    return sorted(found, key=lambda o: o.statement.lineno)


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield from _statements(child)


def _overwrites(module: Module, node: ast.stmt) -> Iterator[Overwrite]:
    if isinstance(node, ast.AugAssign):
        key = key_of(node.target)
        if key is not None and not isinstance(node.value, ast.JoinedStr):
            yield Overwrite(module, node, key, _source(module, node), _unrolled(module, node))
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and (key := key_of(target)) is not None:
                yield Overwrite(module, node, key, _source(module, node))
    if isinstance(node, (ast.Assign, ast.Expr, ast.Return, ast.AnnAssign)):
        value = node.value
        if value is not None:
            yield from _in_calls(module, node, value)


def _in_calls(module: Module, node: ast.stmt, value: ast.expr) -> Iterator[Overwrite]:
    for call, name in module.calls(value):
        flag = next((k.value for k in call.keywords if k.arg == "inplace"), None)
        if literal(flag) is True and flag is not None and call.args:
            key = key_of(call.args[0]) or ""
            text = ast.unparse(call)
            yield Overwrite(module, node, key, text, replacing(flag, "False"))
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        is_method = method.endswith("_") and not method.endswith("__") and method not in HARMLESS
        if is_method and "init" not in name and isinstance(call.func, ast.Attribute):
            owner = key_of(call.func.value)
            if owner is not None and "." not in owner.removeprefix("self."):
                yield Overwrite(module, node, owner, ast.unparse(call), _without_mark(node, call))


def _without_mark(node: ast.stmt, call: ast.Call) -> Edit | None:
    """`x.add_(y)` as a statement becomes `x = x.add(y)`."""
    if not isinstance(node, ast.Expr) or node.value is not call:
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name):
        return None
    name = method.value.id
    given = ", ".join(ast.unparse(a) for a in (*call.args, *call.keywords))
    return replacing(node, f"{name} = {name}.{method.attr[:-1]}({given})")


def _unrolled(module: Module, node: ast.AugAssign) -> Edit | None:
    """`x *= mask` becomes `x = x * mask`, its right side as it is written."""
    operator = OPERATORS.get(type(node.op))
    text = _source(module, node)
    head = re.match(r"(.+?)\s*(?:\*\*|//|[-+*/@%])=\s*", text, re.DOTALL)
    if operator is None or head is None or isinstance(node.target, ast.Subscript):
        return None
    value = text[head.end() :]
    if not isinstance(node.value, ATOMS) and not value.startswith("("):
        value = f"({value})"
    return replacing(node, f"{head[1]} = {head[1]} {operator} {value}")


def _source(module: Module, node: ast.stmt) -> str:
    return ast.get_source_segment(module.text, node) or ast.unparse(node)


def makes(project: Project, module: Module, at: ast.AST, value: ast.expr, operation: str) -> bool:
    """Tell whether an expression is the output of the operation an autograd node is named after."""
    if not isinstance(value, ast.Call):
        return False
    found = NODE.match(operation)
    wanted = (found[1] if found else operation).lower()
    names = {wanted, *MAKERS.get(wanted, ())}
    called = (module.qualified(value.func) or "").rsplit(".", 1)[-1]
    if not called and isinstance(value.func, ast.Attribute):
        called = value.func.attr
    if called.lower().rstrip("_").replace("_", "") in names:
        return True
    key = key_of(value.func)
    makers = project.lookup(module, at, key) if key else []
    return any(
        isinstance(m, ast.Call)
        and (module.qualified(m.func) or "").rsplit(".", 1)[-1].lower() in names
        for m in makers
    )


def changed_after(
    project: Project, module: Module, function: Function | ast.Module, operation: str
) -> list[Overwrite]:
    """Return the changes of the value that an operation made, before its name is bound anew."""
    found: list[Overwrite] = []
    changes = overwrites_in(module, function)
    for node in _statements(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        key = key_of(node.targets[0])
        if key is None or not makes(project, module, function, node.value, operation):
            continue
        end = _next_binding(function, key, node.lineno)
        found += [o for o in changes if o.target == key and node.lineno < o.statement.lineno < end]
    return list(dict.fromkeys(found))


def _next_binding(function: ast.AST, key: str, line: int) -> int:
    later = [
        n.lineno
        for n in _statements(function)
        if isinstance(n, ast.Assign)
        and n.lineno > line
        and any(key_of(t) == key and not isinstance(t, ast.Subscript) for t in n.targets)
    ]
    return min(later, default=1 << 30) + 1  # the right side of the binding may change it still
