"""Calls: the project's functions and classes are followed, everything else is an event."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import (
    contexts,
    enumerations,
    expressions,
    forward_hooks,
    lazy_expressions,
    library,
    mappings,
    names,
    statements,
)
from traindx.analysis.program.execution.events import EventForm, Guard
from traindx.analysis.program.execution.machine import MAX_DEPTH, BlockEnd
from traindx.analysis.program.execution.telling import is_told
from traindx.analysis.program.execution.truth import is_object
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    ClassValue,
    FunctionValue,
    Generator,
    HandedCall,
    Instance,
    Items,
    Known,
    Method,
    Part,
    PartialCall,
    Result,
    Scope,
    Site,
    Table,
    Unknown,
    Value,
    joined,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]
Body = Callable[[Value], BlockEnd]
MAX_NESTED = 4  # runs of one function inside each other, each of another object
BRANCHES = (Instance, Items, Table, Known)
DATA_CLASSES = ("dataclass", "define", "attrs", "frozen", "s")
RECORD_BASES = ("typing.NamedTuple", "NamedTuple", "pydantic.BaseModel", "BaseModel",
                "typing.TypedDict", "pydantic_settings.BaseSettings")  # fmt: skip


def callee_of(m: Machine, node: ast.expr, scope: Scope) -> Value:
    """Return what a call calls: a method of a value out of sight stays with its value."""
    if not isinstance(node, ast.Attribute):
        return expressions.evaluate(m, node, scope)
    owner = expressions.evaluate(m, node.value, scope)
    if isinstance(owner, (Result, Unknown, Part)) and node.attr not in owner.fields:
        return Method(owner, node.attr)
    if isinstance(owner, Choice) and all(
        isinstance(o, (Result, Unknown, Part, Known)) for o in owner.options
    ):
        return Method(owner, node.attr)
    return names.attribute(m, owner, node.attr, node, scope)


def call(
    m: Machine, callee: Value, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value:
    """Return the result of a call."""
    if isinstance(callee, Part) and isinstance(callee.key, str):
        callee = Method(callee.of, callee.key)  # a method that was kept under a name
    if isinstance(callee, FunctionValue):
        return _call_own(m, callee, args, kwargs, node, scope)
    if isinstance(callee, ClassValue):
        return instantiate(m, callee, args, kwargs, node, scope)
    if isinstance(callee, PartialCall):
        together = {**callee.kwargs, **kwargs}
        return call(m, callee.callee, (*callee.args, *args), together, node, scope)
    if isinstance(callee, Instance):
        return _call_instance(m, callee, args, kwargs, node, scope)
    if isinstance(callee, HandedCall):
        return callee.run()
    if isinstance(callee, Choice):
        return _call_any(m, callee, args, kwargs, node, scope)
    if contexts.is_switch(callee) and args and isinstance(args[0], FunctionValue):
        return replace(args[0], decorators=(*args[0].decorators, callee))
    with _seen_by_autograd(m, args):
        return library.call(m, callee, args, kwargs, node, scope)


def _call_any(
    m: Machine, callee: Choice, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> Value:  # fmt: skip
    """Call one of several: each of them, from the same state."""
    found: list[Value] = []

    def side(option: Value) -> Callable[[], BlockEnd]:
        def run() -> BlockEnd:
            found.append(call(m, option, args, kwargs, node, scope))
            return BlockEnd.NEXT

        return run

    callable_ = [o for o in callee.options if not isinstance(o, Known)]
    callable_ = [o for o in callable_ if _fits(m, o, args, kwargs)] or callable_
    if not callable_:
        return Unknown()
    site = Site(scope.module, node)
    m.explore([(Guard(callee, site, True), side(o)) for o in callable_])
    result = found[0]
    for other in found[1:]:
        result = joined(result, other)
    return result


def _fits(m: Machine, callee: Value, args: Sequence[Value], kwargs: Keywords) -> bool:
    """Tell whether a call does not fail for the number of its arguments."""
    if isinstance(callee, Instance):
        found = (names.find_method(m, callee.cls, n, callee) for n in ("__call__", "forward"))
        callee = next((f for f in found if isinstance(f, FunctionValue)), callee)
    if not isinstance(callee, FunctionValue) or callee.decorators or "**" in kwargs:
        return True
    if any(isinstance(a, Result) and a.maker == "operator.spread" for a in args):
        return True
    spec, first = callee.node.args, 0 if callee.bound is None else 1
    positional = [p.arg for p in (*spec.posonlyargs, *spec.args)][first:]
    needed = positional[len(args) : max(0, len(positional) - len(spec.defaults))]
    is_open = spec.vararg is not None or len(args) <= len(positional)
    return is_open and all(name in kwargs for name in needed)


def _call_own(
    m: Machine, function: FunctionValue, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> Value:  # fmt: skip
    site = Site(scope.module, node)
    name = getattr(function.node, "name", "<lambda>")
    if name == "forward" and _begins_pass(m, function.bound):
        return _forward(m, function, args, kwargs, site, scope)
    event = m.record(EventForm.CALL, site, name, function.bound, args, kwargs, scope.function)
    if _is_beside(m, function, (*args, *kwargs.values())):
        maker = f"{function.module.name}.{name}"
        event.result = Result(maker, args=event.args, kwargs=event.kwargs, site=site)
        return event.result
    event.is_own = True
    event.callee = function
    before, m.callers = m.callers, (*m.callers, site)
    try:
        event.result = run_function(m, function, args, kwargs)
    finally:
        m.callers = before
    return event.result


def _is_beside(m: Machine, function: FunctionValue, given: Sequence[Value]) -> bool:
    """Tell whether a call in the background of a large library is none of the program's business.

    It is given plain values only, so it has no hold of anything that trains, and its text has
    nothing that a rule asks about: is a package there, how is a logger set up.
    """
    node, home = function.node, function.module
    is_apart = function.bound is None and home in m.project.set_aside
    if not is_apart or isinstance(node, ast.Lambda) or not all(isinstance(v, Known) for v in given):
        return False
    return home.function_of(node) is None and not is_told(home, node)


def _begins_pass(m: Machine, model: Value | None) -> bool:
    """Tell whether a call of `forward` begins a pass: `super().forward(x)` is a part of one."""
    is_model = isinstance(model, Instance) and library.is_module(model)
    return is_model and not any(model is running for running in m.within)


def _forward(
    m: Machine, method: FunctionValue, args: Sequence[Value], kwargs: Keywords, site: Site,
    scope: Scope,
) -> Value:  # fmt: skip
    """Run the forward pass of a model."""
    model = method.bound
    if model is None:
        return Unknown()
    with _seen_by_autograd(m, args):
        event = m.record(EventForm.CALL, site, "forward", model, args, kwargs, scope.function)
        event.is_own = True
        event.is_training, event.mode = library.mode_of(model), library.held_mode(model)
        before = m.callers, m.within, m.pass_is_training
        m.callers, m.within = (*m.callers, site), (*m.within, model)
        m.pass_is_training = event.is_training
        try:
            output = run_function(m, method, args, kwargs)
        finally:
            m.callers, m.within, m.pass_is_training = before
        event.result = forward_hooks.after_pass(m, model, args, output, site.node, scope)
    return event.result


def _seen_by_autograd(m: Machine, args: Sequence[Value]) -> AbstractContextManager[None]:
    """Leave open whether autograd records: an old torch does not, of what is volatile."""
    makers = (a for a in args if isinstance(a, Result) and a.maker == "torch.autograd.Variable")
    if m.gradients is Answer.YES and any("volatile" in a.kwargs for a in makers):
        return m.switched(Answer.UNKNOWN)
    return nullcontext()


def run_function(
    m: Machine, function: FunctionValue, args: Sequence[Value], kwargs: Keywords
) -> Value:
    """Run a function of the project with its arguments."""
    node = function.node
    if isinstance(node, ast.Lambda):
        inner = _scope_of(m, function, args, kwargs)
        return expressions.evaluate(m, node.body, inner)
    subject = function.bound if function.bound is not None else next(iter(args), None)
    if _is_recursion(m, function, subject) or m.depth >= MAX_DEPTH:
        m.entered.add(node)
        return Result(f"recursion.{node.name}", args=tuple(args), kwargs=dict(kwargs))
    if is_generator(node):
        return Generator(function, tuple(args), dict(kwargs))
    inner = _scope_of(m, function, args, kwargs)
    with _entered(m, function, subject), m.called(inner):
        status = statements.run(m, node.body, inner)
    m.bindings.append(dict(inner.names))
    return _returned(inner, status)


def _is_recursion(m: Machine, function: FunctionValue, subject: Value | None) -> bool:
    """Tell whether a function runs already; of another object it may run inside of itself.

    A function of a tree is given a branch of it: a child of a module, a list in a list.
    """
    count = m.active.count(function.node)
    if count == 0 or count >= MAX_NESTED:
        return count > 0
    is_branch = isinstance(subject, BRANCHES) or (subject is not None and is_object(subject))
    if function.bound is None and not is_branch:
        return True
    return (function.node, id(subject)) in m.bound


def run_generator(m: Machine, made: Generator, consumer: Callable[[Value], None]) -> None:
    """Run a generator function; each value that it yields goes to the consumer."""
    function = made.function
    if m.active.count(function.node) > 0:
        consumer(Unknown())
        return
    inner = _scope_of(m, function, made.args, made.kwargs)
    if isinstance(function.node, ast.Lambda):
        lazy_expressions.run(m, function.node.body, inner, consumer)
        return
    inner.consumer = consumer
    with _entered(m, function), m.called(inner):
        statements.run(m, function.node.body, inner)


@contextmanager
def _entered(m: Machine, function: FunctionValue, subject: Value | None = None) -> Iterator[None]:
    """Be inside of a function, with what its decorators switch."""
    m.entered.add(function.node)
    m.active.append(function.node)
    m.bound.append((function.node, id(subject)))
    m.depth += 1
    contexts_before = m.contexts
    m.contexts = (*contexts_before, *function.decorators)
    try:
        switched = _decorated_gradients(m, function)
        with nullcontext() if switched is None else m.switched(switched):
            yield
    finally:
        m.contexts = contexts_before
        m.depth -= 1
        m.bound.pop()
        if m.active and m.active[-1] is function.node:
            m.active.pop()


def _decorated_gradients(m: Machine, function: FunctionValue) -> Answer | None:
    """Return whether autograd records inside; None where no decorator says so."""
    now, is_switched = m.gradients, False
    written = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
    for decorator in written:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = names.canonical(function.module.qualified(target) or "")
        if name.rsplit(".", 1)[-1] not in ("no_grad", "inference_mode", "enable_grad",
                                           "set_grad_enabled"):  # fmt: skip
            continue
        args: tuple[Value, ...] = ()
        if isinstance(decorator, ast.Call):
            args = tuple(expressions.evaluate(m, a, function.scope) for a in decorator.args)
        now = contexts.switch(Result(f"torch.{name.rsplit('.', 1)[-1]}", args=args), now)
        is_switched = True
    foreign = [d for d in function.decorators if not contexts.is_switch(d)]
    for applied in (d for d in function.decorators if contexts.is_switch(d)):
        now, is_switched = contexts.switch(applied, now), True
    if now is not Answer.NO and not all(contexts.keeps_gradients(d) for d in foreign):
        return Answer.UNKNOWN
    return now if is_switched else None


def _scope_of(
    m: Machine, function: FunctionValue, args: Sequence[Value], kwargs: Keywords
) -> Scope:
    """Return the scope of a call: its parameters hold what was given."""
    node = function.node
    scope = Scope(function.module, {}, function.scope, node, function.bound, function.owner)
    given = list(args) if function.bound is None else [function.bound, *args]
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    is_open = "**" in kwargs or any(map(_is_spread, given))
    _bind_defaults(m, function, scope, is_open)
    required = len(positional) - len(spec.defaults)
    for place, (parameter, value) in enumerate(zip(positional, given, strict=False)):
        may_be_empty = _is_spread(value) and place >= required
        usual = scope.names[parameter.arg]
        _set(scope, parameter.arg, joined(usual, value) if may_be_empty else value)
    known = {p.arg for p in (*positional, *spec.kwonlyargs)}
    for key, value in kwargs.items():
        if key in known:
            _set(scope, key, value)
    if spec.vararg is not None:
        rest = given[len(positional) :]
        scope.names[spec.vararg.arg] = Items("tuple", not is_open, held=dict(enumerate(rest)))
    if spec.kwarg is not None:
        extra = {k: v for k, v in kwargs.items() if k not in known and k != "**"}
        scope.names[spec.kwarg.arg] = Table("**" not in kwargs, held=dict(extra))
    return scope


def _is_spread(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "operator.spread"


def _set(scope: Scope, name: str, value: Value) -> None:
    value.add_name(name)
    scope.names[name] = value


def _bind_defaults(m: Machine, function: FunctionValue, scope: Scope, is_open: bool) -> None:
    """Let parameters be their defaults, or unknown where they have none."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    pairs = [*zip(positional, [*defaults, *spec.defaults], strict=True),
             *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]  # fmt: skip
    for parameter, default in pairs:
        note = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
        value: Value = Unknown(
            name=parameter.arg, annotation=note, names=frozenset({parameter.arg})
        )
        value.site = Site(function.module, parameter)
        if default is not None:
            held = expressions.evaluate(m, default, function.scope)
            value = joined(held, value) if is_open else held
        scope.names[parameter.arg] = value


def _returned(scope: Scope, status: BlockEnd) -> Value:
    found = list(scope.returned)
    if status is BlockEnd.NEXT:
        found.append(Known(None))
    if not found:
        return Unknown()
    result = found[0]
    for other in found[1:]:
        result = joined(result, other)
    return result


@lru_cache(maxsize=8192)
def is_generator(node: ast.AST) -> bool:
    """Tell whether a function yields; functions inside of it do not count."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(node))
    while pending:
        found = pending.pop()
        if isinstance(found, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(found))
    return False


def instantiate(
    m: Machine, cls: ClassValue, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> Value:  # fmt: skip
    """Make an object of a class of the project."""
    listed = enumerations.by_value(m, cls, args[0]) if len(args) == 1 else None
    if listed is not None:
        return listed
    made = Instance(cls, site=Site(scope.module, node))
    event = m.record(EventForm.CALL, Site(scope.module, node), cls.node.name, None, args, kwargs,
                     scope.function, made)  # fmt: skip
    event.is_own = True
    event.callee = cls
    construct(m, made, args, kwargs, node, scope)
    return made


def construct(
    m: Machine, made: Instance, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> None:  # fmt: skip
    """Give a new object its attributes."""
    m.entered.add(made.cls.node)
    made.fields["new"] = Items("tuple", held=dict(enumerate(args)))
    made.fields["new by name"] = Table(held=dict(kwargs))
    init = names.find_method(m, made.cls, "__init__", made)
    if isinstance(init, FunctionValue):
        before, m.callers = m.callers, (*m.callers, Site(scope.module, node))
        try:
            run_function(m, init, args, kwargs)
        finally:
            m.callers = before
        m.bindings.append({k: v for k, v in made.fields.items() if isinstance(k, str)})
    elif _is_record(made.cls):
        _fill_record(m, made, args, kwargs)
        after = names.find_method(m, made.cls, "__post_init__", made)
        if isinstance(after, FunctionValue):
            run_function(m, after, (), {})
    else:
        mappings.fill(m, made, args, kwargs)


def _is_record(cls: ClassValue) -> bool:
    found = (d.func if isinstance(d, ast.Call) else d for d in cls.node.decorator_list)
    named = (cls.module.qualified(d) or "" for d in found)
    is_data = any(n.rsplit(".", 1)[-1] in DATA_CLASSES for n in named)
    return (
        is_data
        or any(b in RECORD_BASES for b in cls.foreign)
        or any(_is_record(b) for b in cls.bases)
    )


def _fill_record(m: Machine, made: Instance, args: Sequence[Value], kwargs: Keywords) -> None:
    """Give a data class its fields, in the order of their annotations."""
    fields: list[ast.AnnAssign] = []
    for home in reversed(list(made.cls.lineage())):
        fields += [n for n in home.node.body if isinstance(n, ast.AnnAssign)]
    for position, node in enumerate(fields):
        if not isinstance(node.target, ast.Name):
            continue
        name = node.target.id
        if name in kwargs:
            value = kwargs[name]
        elif position < len(args):
            value = args[position]
        elif node.value is not None:
            value = _default(m, expressions.evaluate(m, node.value, made.cls.scope), node)
        else:
            value = Unknown(name=name)
        value.add_name(name)
        made.fields[name] = value


def _default(m: Machine, value: Value, node: ast.AST) -> Value:
    """Look into `field(default=…)` and `field(default_factory=…)`."""
    if isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in ("field", "Field"):
        factory = value.kwargs.get("default_factory")
        if factory is not None and value.site is not None:
            return call(m, factory, (), {}, node, Scope(value.site.module))
        found = value.kwargs.get("default") or (value.args[0] if value.args else None)
        return found or Unknown()
    return value


def _call_instance(
    m: Machine, callee: Instance, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> Value:  # fmt: skip
    """Call an object: a model runs its forward pass."""
    site = Site(scope.module, node)
    for name in ("__call__", "forward"):
        method = names.find_method(m, callee.cls, name, callee)
        if isinstance(method, FunctionValue):
            if name == "forward":
                return _forward(m, method, args, kwargs, site, scope)
            event = m.record(EventForm.CALL, site, name, callee, args, kwargs, scope.function)
            event.is_own = True
            event.is_training, event.mode = library.mode_of(callee), library.held_mode(callee)
            before, m.callers = m.callers, (*m.callers, site)
            try:
                event.result = run_function(m, method, args, kwargs)
            finally:
                m.callers = before
            return event.result
    with _seen_by_autograd(m, args):
        return library.call(m, callee, args, kwargs, node, scope)


def special(
    m: Machine, owner: Value, name: str, args: Sequence[Value], node: ast.AST, scope: Scope
) -> Value | None:
    """Run what a class of the project defines for an operator: `__getitem__`, `__add__`."""
    if not isinstance(owner, Instance):
        return None
    method = names.find_method(m, owner.cls, name, owner)
    if not isinstance(method, FunctionValue) or method.node in m.active:
        return None
    return call(m, method, args, {}, node, scope)


def required(function: FunctionValue) -> list[Value]:
    """Return values of which nothing is known for the arguments that a call must give."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    taken = positional[0 if function.bound is None else 1 : len(positional) - len(spec.defaults)]
    found: list[Value] = []
    for parameter in taken:
        note = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
        value = Unknown(name=parameter.arg, annotation=note, names=frozenset({parameter.arg}))
        value.site = Site(function.module, parameter)
        found.append(value)
    return found


def unknown_arguments(count: int) -> list[Value]:
    """Return values of which nothing is known."""
    return [Unknown() for _ in range(count)]
