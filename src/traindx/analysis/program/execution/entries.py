"""Where programs start: each file as a script, and every function that nothing in sight calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from traindx.analysis.program.execution import (
    calls,
    examples,
    frameworks,
    library,
    names,
    statements,
)
from traindx.analysis.program.execution.events import Assignment, EventForm, LoopExit, ProgramEvent
from traindx.analysis.program.execution.examples import Example
from traindx.analysis.program.execution.iteration import CONTAINERS
from traindx.analysis.program.execution.machine import Machine, OutOfWork
from traindx.analysis.program.execution.telling import is_told
from traindx.analysis.program.execution.values import (
    Answer,
    ClassValue,
    FunctionValue,
    Generator,
    Instance,
    Items,
    Result,
    Site,
    Unknown,
    Value,
)
from traindx.analysis.program.project import Project, paused_collector
from traindx.analysis.program.syntax import Function, Module
from traindx.analysis.time_limit import is_out_of_time

MAX_EVENTS = 250_000  # of a whole project; a program of ten thousand lines has some 50,000
LIBRARY_EVENTS = 150_000  # of a large library: most of what its classes do is set themselves up
TOO_LARGE = "the project is too large to be followed to its end"
FIRST = ("forward", "__call__", "fit", "train", "run")
BUILT_BY = ("__init__", "__post_init__")
SPARE = 20_000  # expressions that each function more may take


@dataclass(frozen=True, eq=False)
class Execution:
    """What one program does, in order; `gave_up` says why it was not followed to its end."""

    module: Module
    function: Function | None
    events: tuple[ProgramEvent, ...]
    gave_up: str = ""
    examples: tuple[Example, ...] = ()
    # what names and attributes held where each call, constructor and file ended
    bindings: tuple[dict[str, Value], ...] = ()
    assignments: tuple[Assignment, ...] = ()
    exits: tuple[LoopExit, ...] = ()
    returned: Value | None = None  # what a function that nobody calls gives back


def executions(project: Project) -> list[Execution]:
    """Follow every program that the project holds."""
    with paused_collector():
        return _executions(project)


def _executions(project: Project) -> list[Execution]:
    machines = {module: Machine(project, module) for module in project.training_modules}
    found: list[Execution] = []
    events, most = 0, LIBRARY_EVENTS if project.background else MAX_EVENTS
    for module, machine in machines.items():
        if events < most:
            _guarded(machine, partial(statements.load, machine, module))
        else:
            machine.gave_up = TOO_LARGE
        found.append(_told(machine, module, None, 0, 0))
        events += len(machine.events)
    entered = {node for machine in machines.values() for node in machine.entered}
    for module, machine in machines.items():
        before = len(machine.events)
        for execution in _uncalled(machine, module, entered) if events < most else ():
            found.append(execution)
            # of a file that was begun more is run: what it calls most is often at its end
            if events + len(machine.events) - before > 2 * most or is_out_of_time():
                found.append(Execution(module, None, (), TOO_LARGE))
                break
        if events >= most:
            found.append(Execution(module, None, (), TOO_LARGE))
        events += len(machine.events) - before
    return found


def _uncalled(machine: Machine, module: Module, entered: set[ast.AST]) -> Iterator[Execution]:
    """Run what nothing in sight calls: trained modules, chains, then classes, then functions."""
    yield from _uncalled_chains(machine, module)
    yield from _undriven(machine, module, entered)
    for cls in module.nodes(ast.ClassDef):
        methods = [n for n in cls.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        methods.sort(key=lambda n: n.name not in FIRST)
        waiting = [n for n in methods if n not in entered and is_told(module, n)]
        if any(n not in machine.entered for n in waiting):
            yield from _class_alone(machine, module, cls, waiting)
    for function in module.functions.values():
        is_own = module.parents.get(function) is module.tree or not _is_inner(module, function)
        if is_own and function not in entered and is_told(module, function):
            yield from _run_apart(
                machine, module, function, partial(_start, machine, module, function)
            )


def _uncalled_chains(machine: Machine, module: Module) -> Iterator[Execution]:
    """Run the chains of layers that the script makes and neither calls nor hands on."""
    chains = [
        e.result
        for e in machine.events
        if e.name == "torch.nn.Sequential" and isinstance(e.result, Result)
    ]
    taken = {
        id(part)
        for e in machine.events
        if e.result is None or e.name == "()" or e.act is EventForm.STORE or e.name in CONTAINERS
        for given in (e.args if e.act is EventForm.STORE else (e.receiver, *e.args))
        for part in (given, *(given.members if isinstance(given, Items) else ()))
    }
    for chain in chains:
        if id(chain) in taken or chain.site is None or chain.site.module is not module:
            continue
        first, held = len(machine.events), len(machine.bindings)
        given, scope = Unknown(name="input"), names.file_scope(machine, module)
        with machine.isolated():
            _guarded(
                machine, partial(calls.call, machine, chain, (given,), {}, chain.site.node, scope)
            )
        yield _told(machine, module, None, first, held)


def _is_inner(module: Module, function: Function) -> bool:
    """Tell whether a function belongs to a class or to another function."""
    return module.function_of(function) is not None or module.class_of(function) is not None


def _run_apart(
    machine: Machine, module: Module, function: Function, run: Callable[[], None]
) -> Iterator[Execution]:
    """Run something that nobody calls, and take back what it changes."""
    if function in machine.entered:
        return
    first, held = len(machine.events), len(machine.bindings)
    machine.gave_up, machine.returned = "", None
    machine.work = max(0, machine.work - SPARE)
    with machine.isolated():
        _guarded(machine, run)
    yield _told(machine, module, function, first, held)


def _class_alone(
    machine: Machine, module: Module, cls: ast.ClassDef, methods: Sequence[Function]
) -> Iterator[Execution]:
    """Make an object of a class and run its methods, each from the same state."""
    scope = names.file_scope(machine, module)
    found = names.resolve(machine, cls.name, scope)
    if not isinstance(found, ClassValue) or found.node is not cls:
        return
    machine.work = max(0, machine.work - SPARE)
    if names.is_autograd_function(found):
        first, machine.gave_up = len(machine.events), ""
        with machine.isolated():
            _guarded(machine, lambda: frameworks.apply_function(machine, found, (), cls, scope))
        yield _told(machine, module, None, first, len(machine.bindings))
        return
    with machine.isolated():
        made = Instance(found, site=Site(module, cls))
        first = len(machine.events)
        machine.gave_up, machine.returned = "", None
        _guarded(machine, lambda: calls.construct(machine, made, (), {}, cls, scope))
        library.forget_mode(machine, made)
        built = _told(machine, module, None, first, len(machine.bindings))
        for node in methods:
            for alone in _run_apart(
                machine, module, node, partial(_start_method, machine, made, node)
            ):
                events = (*built.events, *alone.events)
                made_names = (*built.assignments, *alone.assignments)
                yield replace(alone, events=events, assignments=made_names)
        if all(n.name in BUILT_BY for n in methods):
            yield replace(built, gave_up=machine.gave_up, examples=tuple(machine.examples))


def _start(machine: Machine, module: Module, function: Function) -> None:
    """Run a function with arguments of which nothing is known."""
    value = names.of_file(machine, module, function.name)
    if isinstance(value, FunctionValue):
        _started(machine, value)


def _start_method(machine: Machine, made: Instance, function: Function) -> None:
    method = names.find_method(machine, made.cls, function.name, made)
    if isinstance(method, FunctionValue) and function.name in ("forward", "__call__"):
        given, switches = calls.required(method), _switches(method)
        scope = names.file_scope(machine, method.module)
        calls.call(machine, made, given, switches, function, scope)
    elif isinstance(method, FunctionValue) and function.name not in BUILT_BY:
        _started(machine, method)


def _undriven(machine: Machine, module: Module, entered: set[ast.AST]) -> Iterator[Execution]:
    """Let Lightning's modules that no trainer in sight gets be trained."""
    for cls in module.nodes(ast.ClassDef):
        if cls in entered and _has_run(cls, machine, entered):
            continue
        found = names.resolve(machine, cls.name, names.file_scope(machine, module))
        if not isinstance(found, ClassValue) or not frameworks.is_lightning_module(Instance(found)):
            continue
        first, held = len(machine.events), len(machine.bindings)
        machine.gave_up, machine.returned = "", None
        with machine.isolated():
            made = Instance(found, site=Site(module, cls))
            _guarded(machine, partial(_fit, machine, module, made, cls))
        yield _told(machine, module, None, first, held)


def _has_run(cls: ast.ClassDef, machine: Machine, entered: set[ast.AST]) -> bool:
    steps = [n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "training_step"]
    return any(s in entered or s in machine.entered for s in steps) or not steps


def _fit(machine: Machine, module: Module, made: Instance, cls: ast.ClassDef) -> None:
    scope = names.file_scope(machine, module)
    calls.construct(machine, made, (), {}, cls, scope)
    frameworks.fit_lightning(machine, made, (), scope)


def _started(machine: Machine, function: FunctionValue) -> None:
    found = calls.run_function(machine, function, (), _switches(function))
    machine.returned = found
    if isinstance(found, Generator):
        calls.run_generator(machine, found, lambda value: None)


def _told(
    machine: Machine, module: Module, function: Function | None, first: int, held: int
) -> Execution:
    """Return what was done since an event."""
    return Execution(
        module,
        function,
        tuple(machine.events[first:]),
        machine.gave_up,
        tuple(machine.examples),
        tuple(machine.bindings[held:]),
        tuple(a for a in machine.assignments if a.order >= first),
        tuple(x for x in machine.exits if x.order >= first),
        machine.returned,
    )


def _switches(function: FunctionValue) -> dict[str, Value]:
    """The parameters that are switches: a caller out of sight may set them either way."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    pairs = [*zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True),
             *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]  # fmt: skip
    return {
        parameter.arg: Unknown(name=parameter.arg)
        for parameter, default in pairs
        if isinstance(default, ast.Constant) and isinstance(default.value, bool)
    }


def _guarded(machine: Machine, run: Callable[[], object]) -> None:
    first = len(machine.events)
    machine.gradients = Answer.YES
    try:
        run()
        examples.draw(machine, first)
    except OutOfWork:
        machine.gave_up = "the program is too large to be followed to its end"
    except RecursionError:
        machine.gave_up = "the program is nested too deeply to be followed"
