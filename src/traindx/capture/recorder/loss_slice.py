"""Cuts the statements that compute the loss out of the user's own training step.

Only assignments are ever kept, with the `if`, `for` and `with` around them; what has effects, such
as an optimizer's step, a print or a log, is not. A name whose value is still there and carries no
gradient is taken as it is, so that no batch is drawn anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

import torch

from .backward_call import (
    DEFINITIONS,
    CannotSlice,
    Path,
    backward_path,
    body_of,
    loss_expression,
    path_to,
    scope_of,
)

BATCH = "__traindx_batch__"
LOSS = "__traindx_loss__"

_CONTEXTS = frozenset(
    {"autocast", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "nullcontext",
     "sdpa_kernel", "sdp_kernel", "device"}
)  # fmt: skip
_FORBIDDEN = frozenset({"next", "iter", "input", "open", "exec", "eval", "print", "super"})
_FORBIDDEN_METHODS = frozenset(
    {"step", "zero_grad", "backward", "manual_backward", "update", "pop", "popitem", "popleft",
     "put", "get_nowait", "write", "send", "recv", "all_reduce", "barrier", "save",
     "add_scalar", "next", "__next__", "append", "extend"}
)  # fmt: skip
_GROWING = frozenset({"append", "extend", "update", "setdefault", "add", "insert"})
_FRESH_CALLS = frozenset({"list", "dict", "defaultdict", "OrderedDict", "set", "deque"})
_FRESH = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


class Slice:
    """The user's computation of the loss, ready to run once more."""

    def __init__(self, code: CodeType, names: dict[str, Any], used: set[str]) -> None:
        self.code = code
        self.names = names
        self.used = [names[name] for name in sorted(used) if name in names]

    def run(self) -> Any:
        names = dict(self.names)
        exec(self.code, names)
        return names[LOSS]


def slice_step(
    frame: FrameType, *, batch: Any, is_wide: bool = False, is_after: bool = False
) -> Slice:
    """Return the computation of the loss that a frame calls `backward` on, or called it before."""
    path = path_to(body_of(frame), frame.f_lineno, is_after=is_after)
    anchor = backward_path(path)
    is_later = anchor is not path
    scope, loop = scope_of(anchor)
    statement = anchor[-1][0][anchor[-1][1]]
    loss = loss_expression(statement, {**frame.f_globals, **frame.f_locals})
    spoiled = _defined(scope[0][0][scope[0][1] + 1 :]) if is_later else set()
    forced: set[str] = set()
    for _ in range(6):
        slicer = _Slicer(frame, spoiled, forced, is_wide=is_wide)
        statements = slicer.chain(scope, loss, statement)
        if not slicer.clashes:
            break
        forced |= slicer.clashes
    else:
        raise CannotSlice("a name stands for several values")
    statements = slicer.start(loop, batch) + statements
    slicer.check_mutated(statements)
    tree = ast.fix_missing_locations(ast.Module(body=statements, type_ignores=[]))
    code = compile(tree, frame.f_code.co_filename, "exec", dont_inherit=True)
    names = {**frame.f_globals, **frame.f_locals, BATCH: batch}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return Slice(code.replace(co_name=frame.f_code.co_name), names, used)


def _stored(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _defined(statements: list[ast.stmt]) -> set[str]:
    return {name for statement in statements for name in _stored(statement)}


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _first_name(node: ast.expr) -> str:
    """Return the name that a chain of methods begins with: `h` of `h.mul_(2).exp_()`."""
    while isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_safe(node: ast.AST) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(inner, ast.Call):
            if isinstance(inner.func, ast.Name) and inner.func.id in _FORBIDDEN:
                return False
            if isinstance(inner.func, ast.Attribute) and inner.func.attr in _FORBIDDEN_METHODS:
                return False
    return True


def carries_gradient(value: Any, depth: int = 3) -> bool:
    """Say whether a value holds a tensor that was computed with gradients."""
    return _holds(value, lambda tensor: tensor.grad_fn is not None, depth)


def _holds(value: Any, wanted: Callable[[Any], bool], depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return wanted(value)
    if depth == 0 or isinstance(value, (str, bytes, int, float, type, torch.nn.Module)):
        return False
    if isinstance(value, (list, tuple, set)):
        return any(_holds(item, wanted, depth - 1) for item in list(value)[:1000])
    if isinstance(value, dict):
        return any(_holds(item, wanted, depth - 1) for item in list(value.values())[:1000])
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and not callable(value):
        return any(_holds(item, wanted, depth - 1) for item in list(held.values())[:100])
    return False


class _Slicer:
    """Goes through statements from the last to the first and keeps what a name depends on."""

    def __init__(
        self, frame: FrameType, spoiled: set[str], forced: set[str], *, is_wide: bool
    ) -> None:
        self.names = {**frame.f_globals, **frame.f_locals}
        self.needed: set[str] = set()
        self.redefined = set(spoiled)  # names that have another value by now
        self.taken: set[str] = set()  # names whose present value is used
        self.clashes: set[str] = set()
        self.mutated: set[str] = set()
        self.forced = forced
        self.is_wide = is_wide

    def chain(self, path: Path, loss: ast.expr, statement: ast.stmt) -> list[ast.stmt]:
        block, index = path[0]
        if len(path) == 1:
            self.needed |= _loaded(loss)
            if not _is_safe(loss):
                raise CannotSlice("the loss expression has effects")
            target = ast.Name(id=LOSS, ctx=ast.Store())
            last = ast.Assign(targets=[target], value=loss)
            ast.copy_location(target, statement)
            end: list[ast.stmt] = [ast.copy_location(last, statement)]
        else:
            end = self._inside(block[index], self.chain(path[1:], loss, statement))
        return self.block(block[:index]) + end

    def _inside(self, owner: ast.stmt, inner: list[ast.stmt]) -> list[ast.stmt]:
        if not isinstance(owner, ast.With):
            return inner  # the branch that was taken is known
        items = [item for item in owner.items if self._is_context(item.context_expr)]
        if not items or not inner:
            return inner
        for item in items:
            self.needed |= _loaded(item.context_expr)
        return [ast.copy_location(ast.With(items=items, body=inner), owner)]

    def _is_context(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            name = node.func
            return (name.attr if isinstance(name, ast.Attribute) else _root(name)) in _CONTEXTS
        if isinstance(node, ast.Name):
            return type(self.names.get(node.id)).__name__ in _CONTEXTS
        return False

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for statement in reversed(statements):
            kept = self.statement(statement) + kept
            self.redefined |= set() if isinstance(statement, DEFINITIONS) else _stored(statement)
        return kept

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return self._assignment(statement)
        if isinstance(statement, ast.With):
            return self._inside(statement, self.block(statement.body))
        if isinstance(statement, ast.If):
            return self._branches(statement)
        if isinstance(statement, ast.For):
            return self._loop(statement)
        if isinstance(statement, ast.Expr):
            return self._growth(statement)
        if isinstance(statement, (ast.While, ast.Try)):
            lost = {n for n in _stored(statement) & self.needed if not self._is_settled(n)}
            if lost:
                raise CannotSlice("the loss is computed in a while or try block")
            self._take(_stored(statement) & self.needed)
        return []

    def _is_settled(self, name: str) -> bool:
        """Say whether the value that a name has now is the one that was used."""
        if name in self.redefined or name in self.forced or name not in self.names:
            return False
        value = self.names[name]
        if self.is_wide:
            return not _holds(value, lambda tensor: True, 3)
        return not carries_gradient(value)

    def _take(self, names: set[str]) -> None:
        self.taken |= names
        self.needed -= names

    def _assignment(self, statement: Any) -> list[ast.stmt]:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        changed = {_root(t) for t in targets if isinstance(t, ast.Subscript)} & self.needed
        hit = {name for target in targets for name in _stored(target)} & self.needed
        if statement.value is None or not (hit or changed):
            return []
        if hit and all(self._is_settled(name) for name in hit):
            self._take(hit)
            return []
        if changed and not hit:
            if all(self._is_settled(name) for name in changed):
                return []
            self.mutated |= changed
        if any(isinstance(t, ast.Attribute) for t in targets) or not _is_safe(statement.value):
            raise CannotSlice("a statement that the loss needs has effects")
        if self._is_drawn(statement.value):
            raise CannotSlice("data would be drawn anew")
        self.clashes |= hit & self.taken
        if not isinstance(statement, ast.AugAssign):
            self.needed -= hit
        self.needed |= _loaded(statement.value)
        for target in targets:
            self.needed |= _loaded(target)
        return [statement]

    def _is_drawn(self, value: ast.expr) -> bool:
        """Say whether a function of the user's is called that is given no tensor: `get_batch()`."""
        if any(_holds(self.names.get(name), lambda tensor: True, 3) for name in _loaded(value)):
            return False
        for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
            owner = self.names.get(_root(call.func))
            is_module = isinstance(owner, (torch.nn.Module, ModuleType))
            if owner is not None and not is_module and not isinstance(owner, type):
                return True
        return False

    def _branches(self, statement: ast.If) -> list[ast.stmt]:
        before, redefined = set(self.needed), set(self.redefined)
        taken = set(self.taken)
        body = self.block(statement.body)
        after, self.needed, self.redefined = self.needed, set(before), redefined
        orelse = self.block(statement.orelse)
        if not body and not orelse:
            # what was assigned in a branch keeps its value; it may also come from before
            self.needed = before - (self.taken - taken)
            return []
        if not _is_safe(statement.test):
            raise CannotSlice("a condition has effects")
        self.needed |= before | after | _loaded(statement.test)
        kept = ast.If(test=statement.test, body=body or [ast.Pass()], orelse=orelse)
        return [ast.copy_location(kept, statement)]

    def _loop(self, statement: ast.For) -> list[ast.stmt]:
        before = set(self.needed)
        body = self.block(statement.body)
        if not body:
            self.needed &= before
            return []
        for _ in range(5):  # what a round needs may come from the round before
            known = set(self.needed)
            self.needed |= before
            body = self.block(statement.body)
            if self.needed == known:
                break
        if not _is_safe(statement.iter) or self._is_drawing(statement.iter):
            raise CannotSlice("a loop over data")
        self.needed |= before | _loaded(statement.iter)
        self.needed -= _stored(statement.target)
        kept = ast.For(target=statement.target, iter=statement.iter, body=body, orelse=[])
        return [ast.copy_location(kept, statement)]

    def _is_drawing(self, node: ast.expr) -> bool:
        """Say whether a loop would draw from an iterator or a loader."""
        values = [self.names.get(name) for name in _loaded(node)]
        return any(
            hasattr(type(value), "__next__") or "Loader" in type(value).__name__ for value in values
        )

    def _growth(self, statement: ast.Expr) -> list[ast.stmt]:
        """Keep `losses.append(...)` and `h.relu_()` of what the slice makes itself."""
        call = statement.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return []
        name, method = _first_name(call), call.func.attr
        if name not in self.needed or self._is_settled(name):
            return []
        is_in_place = method.endswith("_") and not method.startswith("_")
        is_growing = method in _GROWING and isinstance(call.func.value, ast.Name)
        if not (is_in_place or is_growing) or not all(map(_is_safe, call.args)):
            return []
        if is_growing:  # a change of the user's tensor in place would be seen when it is run
            self.mutated.add(name)
        self.needed |= _loaded(call)
        return [statement]

    def start(self, loop: ast.For | None, batch: Any) -> list[ast.stmt]:
        """Return what gives names their values from before the step: the parts of the batch."""
        targets = _stored(loop.target) if loop is not None else set()
        lost = {name for name in self.needed if name in self.redefined and name in self.names}
        if self.is_wide:
            lost |= self.needed & targets
        if not lost:
            return []
        if loop is None or batch is None or not lost <= targets:
            raise CannotSlice("a value from before the step is gone")
        target = loop.target
        counts = [n for n in ast.walk(loop.iter) if isinstance(n, ast.Name) and n.id == "enumerate"]
        if counts:
            if not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
                raise CannotSlice("the parts of the batch are not known")
            target = target.elts[1]
        if not lost <= _stored(target):
            raise CannotSlice("a value from before the step is gone")
        value = ast.Name(id=BATCH, ctx=ast.Load())
        start = ast.copy_location(ast.Assign(targets=[target], value=value), loop)
        return [start]

    def check_mutated(self, statements: list[ast.stmt]) -> None:
        """Refuse to change a container that is the user's: it must be made in the slice."""
        fresh: set[str] = set()
        for node in (n for s in statements for n in ast.walk(s) if isinstance(n, ast.Assign)):
            if isinstance(node.value, _FRESH) or (
                isinstance(node.value, ast.Call) and _root(node.value.func) in _FRESH_CALLS
            ):
                fresh |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        if not self.mutated <= fresh:
            raise CannotSlice("a container from outside would be changed")
