"""Where training code makes tensors, and which of them it moves to the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.errors.culprits import Culprit, FailingStatement
from traindx.analysis.program.loops import training_loops
from traindx.analysis.program.patches import Edit, diff, replacing
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module, argument, key_of
from traindx.analysis.program.written_kinds import WrittenKind, value_of

FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace",
     "logspace", "eye", "tensor", "as_tensor", "tril_indices", "triu_indices", "hann_window"}
)  # fmt: skip
MOVES = frozenset({"to", "cuda", "cpu", "to_device", "type_as", "move_to_device", "pin_memory"})


@dataclass(frozen=True, eq=False)
class CreatedTensor:
    """A tensor that is made without a device."""

    statement: ast.stmt
    call: ast.Call
    name: str


def made_on_cpu(module: Module, scope: ast.AST) -> Iterator[CreatedTensor]:
    """Yield the tensors that a scope makes on the default device and leaves there."""
    for call, name in module.calls(scope):
        if not name.startswith("torch.") or name.split(".")[-1] not in FACTORIES:
            continue
        if name.count(".") != 1 or argument(call, "device") is not None:
            continue
        above = list(module.enclosing(call))
        if any(_is_move(n, module) for n in above if isinstance(n, ast.Call)):
            continue
        statement = next((n for n in above if isinstance(n, ast.stmt)), None)
        if statement is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            yield CreatedTensor(
                statement, call, (key_of(target) or "") if target is not None else ""
            )


def _is_move(call: ast.Call, module: Module) -> bool:
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else (module.qualified(func) or "")
    return name in MOVES or name == "register_buffer"


def with_device(module: Module, made: CreatedTensor, like: str) -> str | None:
    """Return the patch that makes a tensor where another one is."""
    call = made.call
    last = call.keywords[-1].value if call.keywords else (call.args[-1] if call.args else None)
    if last is None or last.end_lineno is None or last.end_col_offset is None:
        return None
    # before the bracket, so that a trailing bracket of the last argument stays with it
    end_line, end = call.end_lineno or call.lineno, (call.end_col_offset or 1) - 1
    edit = Edit(end_line, end, end_line, end, f", device={like}.device")
    return diff(module, edit)


def never_moved(project: Project, site: FailingStatement | None) -> Iterator[Culprit]:
    """Yield what training code leaves on the CPU, most certain first."""
    if site is not None and site.function is not None:
        yield from _made_in(site)
    for module in project.modules:
        yield from _dropped_moves(project, module)
    yield from _unmoved_values(project)


def _made_in(site: FailingStatement) -> Iterator[Culprit]:
    """A tensor that the failing function makes itself, used on the failing line."""
    function = site.function
    if function is None:
        return
    used = {k for n in ast.walk(site.node) if (k := key_of(n))}
    inputs = [a.arg for a in function.args.args if a.arg not in ("self", "cls")]
    for made in made_on_cpu(site.module, function):
        if made.name in used or made.statement is site.node:
            like = next((n for n in inputs if n in used), inputs[0] if inputs else "")
            patch = with_device(site.module, made, like) if like else None
            what = made.name or "a tensor"
            says = f"`{ast.unparse(made.call)}` makes {what} on the CPU whatever the inputs are on"
            yield Culprit(site.module, made.statement, says, patch)


def _dropped_moves(project: Project, module: Module) -> Iterator[Culprit]:
    """`x.to(device)` as a statement: a tensor's move is returned, not done in place."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        func = node.value.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("to", "cuda"):
            continue
        name = key_of(func.value)
        at: ast.AST = module.function_of(node) or module.tree
        kind = value_of(project, module, at, func.value).kind
        if name and isinstance(func.value, ast.Name) and kind is WrittenKind.UNKNOWN:
            text = ast.unparse(node.value)
            says = f"`{text}` returns the moved tensor, and nobody keeps it"
            yield Culprit(module, node, says, diff(module, replacing(node, f"{name} = {text}")))


def _unmoved_values(project: Project) -> Iterator[Culprit]:
    """What a loop unpacks from its loader and never moves, while it moves something else."""
    for loop in training_loops(project):
        for node in ast.walk(loop.node):
            if not isinstance(node, ast.For):
                continue
            names = _unpacked(node)
            moved = {n: c for n in names if (c := _moved(node, n)) is not None}
            for name in names:
                if moved and name not in moved and _is_used(node, name):
                    like, call = next(iter(moved.items()))
                    says = f"{name} stays where the loader made it, while {like} is moved"
                    patch = _moving(loop.module, node, name, like, call)
                    yield Culprit(loop.module, node, says, patch)


def _unpacked(loop: ast.For) -> list[str]:
    target: ast.expr = loop.target
    is_counted = isinstance(loop.iter, ast.Call) and key_of(loop.iter.func) == "enumerate"
    if is_counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    return names if len(names) > 1 else []


def _moved(loop: ast.For, name: str) -> ast.Call | None:
    for node in ast.walk(loop):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and isinstance(node, ast.Call):
            is_move = func.attr in ("to", "cuda") and key_of(func.value) == name
            if is_move:
                return node
    return None


def _is_used(loop: ast.For, name: str) -> bool:
    """Tell whether a call of the loop gets the value as it is."""
    calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call))
    return any(key_of(a) == name for c in calls for a in c.args if len(c.args) > 1)


def _moving(module: Module, loop: ast.For, name: str, like: str, call: ast.Call) -> str | None:
    statement = next((n for n in module.enclosing(call) if isinstance(n, ast.stmt)), None)
    if not isinstance(statement, ast.Assign) or key_of(statement.targets[0]) != like:
        return None
    text = ast.unparse(call).replace(like, name, 1)
    line = module.lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    end = (statement.end_lineno or statement.lineno) + 1
    return diff(module, Edit(end, 0, end, 0, f"{indent}{name} = {text}\n"))


def model_left_behind(project: Project, code: str) -> Iterator[Culprit]:
    """Yield models that a failing line uses and that are never moved, where a device is known."""
    for module in project.modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            at: Function | ast.Module = module.function_of(node) or module.tree
            value = value_of(project, module, at, node.value)
            name = key_of(node.targets[0])
            is_model = (
                value.kind is WrittenKind.MODEL and value.is_certain and value.call is node.value
            )
            if not is_model or name is None or name.startswith("self.") or _has_move(at, name):
                continue
            device = _device_before(at, node.lineno)
            is_used = not code or re.search(rf"\b{re.escape(name)}\b", code) is not None
            if not is_used or not (device or ".cuda(" in module.text):
                continue
            edit = replacing(node.value, f"{_text(module, node.value)}.to({device})")
            says = f"{name} is made here and never moved to the device"
            yield Culprit(module, node, says, diff(module, edit) if device else None)


def _text(module: Module, node: ast.expr) -> str:
    return ast.get_source_segment(module.text, node) or ast.unparse(node)


def _has_move(scope: ast.AST, name: str) -> bool:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call):
            func = node.func
            is_method = isinstance(func, ast.Attribute) and func.attr in MOVES
            if is_method and isinstance(func, ast.Attribute) and key_of(func.value) == name:
                return True
            is_handed = any(key_of(a) == name for a in node.args)
            if is_handed and isinstance(func, ast.Attribute) and func.attr in ("prepare", "setup"):
                return True
    return False


def _device_before(scope: ast.AST, line: int) -> str:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and node.lineno < line:
            name = key_of(node.targets[0]) or ""
            if name.split(".")[-1] in ("device", "dev") and "." not in name:
                return name
    return ""
