"""What training code does, in the order in which it does it.

A body is walked as Python would run it, calls into the project's own functions are followed, and
each thing that matters to training (zero_grad, forward, loss, backward, clip, step …) becomes an
`WrittenAct` with its place, the loops and conditions around it, and the contexts it runs under.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from weakref import WeakKeyDictionary

from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module, argument, key_of
from traindx.analysis.program.written_kinds import (
    LOSS_FUNCTIONS,
    UNKNOWN,
    WrittenKind,
    WrittenValue,
    value_of,
)
from traindx.model.findings import Location

FOLLOWED = 3  # levels of the project's own functions
CLIPS = frozenset(
    {"clip_grad_norm_", "clip_grad_value_", "clip_gradients", "clip_grads_with_norm_",
     "clip_grad_norm"}
)  # fmt: skip


class WrittenDo(str, Enum):
    """The acts of a training program."""

    ZERO_GRAD = "zero_grad"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    GRAD = "autograd.grad"
    UNSCALE = "unscale"
    CLIP = "clip"
    STEP = "step"
    SCALER_STEP = "scaler_step"
    SCALER_UPDATE = "scaler_update"
    SCHEDULER_STEP = "scheduler_step"
    TRAIN_MODE = "train_mode"
    EVAL_MODE = "eval_mode"
    MANUAL_UPDATE = "manual_update"


@dataclass(frozen=True, slots=True, eq=False)
class WrittenAct:
    """One thing done, where, and under what."""

    do: WrittenDo
    node: ast.AST
    module: Module
    target: str = ""
    value: WrittenValue = UNKNOWN
    loops: tuple[ast.AST, ...] = ()
    guards: tuple[ast.expr, ...] = ()
    contexts: tuple[str, ...] = ()
    function: Function | None = None
    subject: ast.expr | None = None

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 0))

    @property
    def location(self) -> Location:
        """The statement's place, as a finding gives it."""
        node = self.statement or self.node
        first = int(getattr(node, "lineno", 1))
        return Location(self.module.path, first, int(getattr(node, "end_lineno", None) or first))

    @property
    def statement(self) -> ast.stmt | None:
        """The statement in which it is done."""
        around = (self.node, *self.module.enclosing(self.node))
        return next((n for n in around if isinstance(n, ast.stmt)), None)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is."""

    module: Module
    function: Function | None = None
    loops: tuple[ast.AST, ...] = ()
    guards: tuple[ast.expr, ...] = ()
    contexts: tuple[str, ...] = ()
    given: Mapping[str, WrittenValue] = field(default_factory=dict)
    followed: tuple[Function, ...] = ()


def acts_of(project: Project, module: Module, scope: ast.Module | Function) -> list[WrittenAct]:
    """Return the acts of a module's top level or of a function, in order."""
    known = _KNOWN.setdefault(project, {})
    if scope not in known:
        known[scope] = _find_acts(project, module, scope)
    return known[scope]


def _find_acts(project: Project, module: Module, scope: ast.Module | Function) -> list[WrittenAct]:
    is_training = module in training_files(project)
    if not is_training and not _COMPUTES.search(module.text):
        return []
    function = None if isinstance(scope, ast.Module) else scope
    place = _Place(module, function, followed=() if function is None else (function,))
    if function is not None:
        place = replace(place, contexts=_decorators(module, function))
    return list(_Walk(project, FOLLOWED if is_training else 0).block(scope.body, place))


@lru_cache(maxsize=8)
def training_files(project: Project) -> frozenset[Module]:
    """Return the files that train or evaluate, or call into one that does.

    Most files of a large project do neither; calls are followed in these only.
    """
    found = {m for m in project.training_modules if _TRAINS.search(m.text)}
    names = {m.name for m in found}
    for module in project.training_modules:
        imported = {part for name in module.aliases.values() for part in name.split(".")[:-1]}
        if imported & names and _CALLS.search(module.text):
            found.add(module)
    return frozenset(found)


_TRAINS = re.compile(
    r"\.(?:manual_)?backward\(|\.zero_grad\(|\bDataLoader\("
    r"|\bfor .* in .*(?:loader|_dl\b|batches|\b\w*iter\b)",
)
_CALLS = re.compile(r"\b(?:train|fit|run)\w*\(|epoch|evaluate\w*\(|validate\w*\(")
_COMPUTES = re.compile(r"cross_entropy|_loss\(|Loss\(|loss_f|kl_div|criterion")


_KNOWN: WeakKeyDictionary[Project, dict[ast.AST, list[WrittenAct]]] = WeakKeyDictionary()


def _decorators(module: Module, function: Function) -> tuple[str, ...]:
    """The contexts that a function runs under by its decorators: `@torch.no_grad()`."""
    targets = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    names = (module.qualified(t) or "" for t in targets)
    return tuple(n for n in names if n.endswith(_GRAD_CONTEXTS))


_GRAD_CONTEXTS = ("no_grad", "inference_mode", "enable_grad", "autocast")


class _Walk:
    def __init__(self, project: Project, levels: int) -> None:
        self.project = project
        self.levels = levels

    def block(self, body: list[ast.stmt], place: _Place) -> Iterator[WrittenAct]:
        for statement in body:
            yield from self.statement(statement, place)

    def statement(self, node: ast.stmt, place: _Place) -> Iterator[WrittenAct]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(node, ast.If):
            yield from self.condition(node, place)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self.expression(node.iter, place)
            yield from self.block(node.body, replace(place, loops=(*place.loops, node)))
            yield from self.block(node.orelse, place)
        elif isinstance(node, ast.While):
            inside = replace(place, loops=(*place.loops, node))
            yield from self.expression(node.test, inside)
            yield from self.block(node.body, inside)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self.context(node, place)
        elif isinstance(node, ast.Try):
            yield from self.attempt(node, place)
        else:
            yield from self.simple(node, place)

    def condition(self, node: ast.If, place: _Place) -> Iterator[WrittenAct]:
        yield from self.expression(node.test, place)
        if _is_main_guard(node.test):
            yield from self.block(node.body, place)
            return
        inside = replace(place, guards=(*place.guards, node.test))
        yield from self.block(node.body, inside)
        yield from self.block(node.orelse, inside)

    def context(self, node: ast.With | ast.AsyncWith, place: _Place) -> Iterator[WrittenAct]:
        names = []
        for item in node.items:
            yield from self.expression(item.context_expr, place)
            call = item.context_expr
            target = call.func if isinstance(call, ast.Call) else call
            names.append(place.module.qualified(target) or "")
        yield from self.block(node.body, replace(place, contexts=(*place.contexts, *names)))

    def attempt(self, node: ast.Try, place: _Place) -> Iterator[WrittenAct]:
        yield from self.block(node.body, place)
        for handler in node.handlers:
            test = ast.copy_location(ast.Name("except"), handler)
            yield from self.block(handler.body, replace(place, guards=(*place.guards, test)))
        yield from self.block(node.orelse, place)
        yield from self.block(node.finalbody, place)

    def simple(self, node: ast.stmt, place: _Place) -> Iterator[WrittenAct]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self.expression(child, place)
        yield from _plain_acts(node, place)

    def expression(self, node: ast.expr, place: _Place) -> Iterator[WrittenAct]:
        """Walk an expression inside out, as it is evaluated."""
        if isinstance(node, ast.Lambda):
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self.expression(child, place)
            elif isinstance(child, (ast.keyword, ast.comprehension)):
                for inner in ast.iter_child_nodes(child):
                    if isinstance(inner, ast.expr):
                        yield from self.expression(inner, place)
        if isinstance(node, ast.Call):
            yield from self.call(node, place)

    def call(self, node: ast.Call, place: _Place) -> Iterator[WrittenAct]:
        act = self.direct_act(node, place)
        if act is not None:
            yield act
            return
        followed = self.own_function(node, place)
        if followed is not None:
            module, function = followed
            inside = replace(
                place,
                module=module,
                function=function,
                given=self.given(node, function, place),
                contexts=(*place.contexts, *_decorators(module, function)),
                followed=(*place.followed, function),
            )
            yield from self.block(function.body, inside)

    def direct_act(self, node: ast.Call, place: _Place) -> WrittenAct | None:
        name = place.module.qualified(node.func) or ""
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name.rsplit(".", 1)[-1]
        if last in LOSS_FUNCTIONS and (name.startswith("torch.") or "functional" in name):
            return _act(WrittenDo.LOSS, node, place, target=name, subject=node)
        if last in CLIPS:
            return _act(WrittenDo.CLIP, node, place, target=name)
        if name in {"torch.autograd.grad", "torch.func.grad"}:
            return _act(WrittenDo.GRAD, node, place, target=name)
        if isinstance(node.func, ast.Attribute):
            return self.method_act(node, node.func, place)
        return self.called_value(node, node.func, place)

    def method_act(self, node: ast.Call, method: ast.Attribute, place: _Place) -> WrittenAct | None:
        if method.attr in {"backward", "manual_backward"}:
            return self.backward_act(node, method, place)
        if method.attr in _METHODS:
            value = self.value(method.value, place)
            do = _METHODS[method.attr](node, value)
            target = key_of(method.value) or ""
            return (
                None if do is None else _act(do, node, place, target, value, subject=method.value)
            )
        return self.called_value(node, method, place)

    def backward_act(self, node: ast.Call, method: ast.Attribute, place: _Place) -> WrittenAct:
        engine = self.value(method.value, place)
        by_engine = (
            engine.kind in (WrittenKind.ACCELERATOR, WrittenKind.MODEL)
            or method.attr == "manual_backward"
        )
        of_engine = node.args and not isinstance(method.value, ast.Call)
        subject = node.args[0] if by_engine and of_engine else method.value
        target = key_of(subject) or ""
        return _act(WrittenDo.BACKWARD, node, place, target, engine, subject=subject)

    def called_value(self, node: ast.Call, callee: ast.expr, place: _Place) -> WrittenAct | None:
        """A call of something that is a model or a loss itself."""
        key = key_of(callee)
        if key is None:
            return None
        value = self.value(callee, place)
        is_model = value.kind is WrittenKind.MODEL and (value.is_certain or _may_be_model(key))
        if is_model and not self.own_function(node, place):
            return _act(WrittenDo.FORWARD, node, place, key, value)
        if value.kind is WrittenKind.LOSS:
            return _act(WrittenDo.LOSS, node, place, key, value, subject=node)
        return None

    def value(self, node: ast.expr, place: _Place) -> WrittenValue:
        key = key_of(node)
        if key is not None and key.split(".")[0] in place.given:
            given = place.given[key.split(".")[0]]
            if "." not in key and given.kind is not WrittenKind.UNKNOWN:
                return given
        at: ast.AST = place.function or place.module.tree
        return value_of(self.project, place.module, at, node)

    def own_function(self, node: ast.Call, place: _Place) -> tuple[Module, Function] | None:
        if len(place.followed) > self.levels:
            return None
        found = _definition(self.project, node, place)
        return None if found is None or found[1] in place.followed else found

    def given(self, node: ast.Call, function: Function, place: _Place) -> dict[str, WrittenValue]:
        """What the caller hands over, by the names under which the function knows it."""
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if names[:1] == ["self"]:
            names = names[1:]
        values = {n: self.value(a, place) for n, a in zip(names, node.args, strict=False)}
        values.update({k.arg: self.value(k.value, place) for k in node.keywords if k.arg})
        return values


def _may_be_model(key: str) -> bool:
    """Tell whether a name with a word for a model in it is one, and no class, verb or part."""
    last = key.rsplit(".", 1)[-1]
    words = last.lower().strip("_").split("_")
    return not (last[:1].isupper() or words[0] in _VERBS or words[-1] in _PARTS)


_VERBS = frozenset(
    {"move", "get", "load", "make", "build", "create", "save", "set", "init", "train", "eval",
     "update", "log", "freeze", "prepare", "compile", "export", "convert", "test", "print", "count",
     "add", "is", "has", "resize", "wrap", "run", "fit", "evaluate", "initialize", "setup", "check"}
)  # fmt: skip
_PARTS = frozenset(
    {"tokenizer", "config", "name", "path", "class", "cls", "type", "fn", "args", "size", "loader",
     "factory", "builder", "processor", "kwargs", "wrapper", "dir", "file", "id", "device"}
)  # fmt: skip


def _definition(project: Project, node: ast.Call, place: _Place) -> tuple[Module, Function] | None:
    if isinstance(node.func, ast.Name):
        return project.find_function(place.module, node.func.id)
    if isinstance(node.func, ast.Attribute) and key_of(node.func.value) == "self":
        cls = place.module.class_of(place.function) if place.function is not None else None
        if cls is not None:
            name = f"{cls.name}.{node.func.attr}"
            found = place.module.functions.get(name)
            return None if found is None else (place.module, found)
    if isinstance(node.func, ast.Attribute):
        home = project.by_name.get((place.module.qualified(node.func.value) or "").split(".")[-1])
        if home is not None and home is not place.module and node.func.attr in home.functions:
            return home, home.functions[node.func.attr]
    return None


def _act(
    do: WrittenDo,
    node: ast.AST,
    place: _Place,
    target: str = "",
    value: WrittenValue = UNKNOWN,
    subject: ast.expr | None = None,
) -> WrittenAct:
    return WrittenAct(
        do, node, place.module, target, value, place.loops, place.guards, place.contexts,
        place.function, subject,
    )  # fmt: skip


def _step(node: ast.Call, value: WrittenValue) -> WrittenDo | None:
    if value.kind is WrittenKind.OPTIMIZER:
        return WrittenDo.STEP
    if value.kind is WrittenKind.SCHEDULER:
        return WrittenDo.SCHEDULER_STEP
    if value.kind is WrittenKind.SCALER:
        return WrittenDo.SCALER_STEP
    return (
        WrittenDo.STEP if value.kind is WrittenKind.MODEL else None
    )  # a DeepSpeed engine steps itself


def _mode(node: ast.Call, value: WrittenValue) -> WrittenDo | None:
    if value.kind not in (WrittenKind.MODEL, WrittenKind.UNKNOWN) or len(node.args) > 1:
        return None
    mode = argument(node, "mode", 0)
    if mode is None:
        return None if node.args or node.keywords else WrittenDo.TRAIN_MODE
    if not isinstance(mode, ast.Constant):
        return None
    return WrittenDo.TRAIN_MODE if mode.value else WrittenDo.EVAL_MODE


_METHODS: dict[str, Callable[[ast.Call, WrittenValue], WrittenDo | None]] = {
    "zero_grad": lambda node, value: WrittenDo.ZERO_GRAD,
    "step": _step,
    "unscale_": lambda node, value: WrittenDo.UNSCALE,
    "update": lambda node, value: (
        WrittenDo.SCALER_UPDATE if value.kind is WrittenKind.SCALER else None
    ),
    "train": _mode,
    "eval": lambda node, value: None if node.args else WrittenDo.EVAL_MODE,
}


def _plain_acts(node: ast.stmt, place: _Place) -> Iterator[WrittenAct]:
    """Updates written by hand: `p.grad = None`, `p -= lr * p.grad`, `p.data.add_(…)`."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            is_cleared = isinstance(node.value, ast.Constant) and node.value.value is None
            if isinstance(target, ast.Attribute) and target.attr == "grad" and is_cleared:
                yield _act(WrittenDo.ZERO_GRAD, node, place, key_of(target.value) or "")
    text = ast.dump(node) if isinstance(node, (ast.Expr, ast.AugAssign, ast.Assign)) else ""
    if "attr='grad'" in text and ("attr='zero_'" in text or "attr='fill_'" in text):
        yield _act(WrittenDo.ZERO_GRAD, node, place)
    elif "attr='grad'" in text and isinstance(node, (ast.AugAssign, ast.Expr, ast.Assign)):
        written = node.target if isinstance(node, ast.AugAssign) else None
        if written is not None or "attr='data'" in text or "attr='copy_'" in text:
            yield _act(WrittenDo.MANUAL_UPDATE, node, place)


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and key_of(test.left) == "__name__"
