"""Trace a module of the project: from its construction through its forward pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes import calls, names
from traindx.analysis.program.shapes.machine import Conflict, ConflictFound, ShapeMachine, ShapeStep
from traindx.analysis.program.shapes.sizes import Dim, symbol
from traindx.analysis.program.shapes.values import (
    UNKNOWN,
    CallFrame,
    ClassRef,
    FunctionRef,
    GiveUp,
    Ref,
    Shape,
    ShapedTensor,
    Value,
)
from traindx.analysis.program.syntax import Module


@dataclass(frozen=True, slots=True)
class ForwardTrace:
    """What became of the shapes: each step, the first conflict, or why nobody could follow."""

    steps: tuple[ShapeStep, ...]
    output: tuple[Shape, ...] = ()
    conflict: Conflict | None = None
    gave_up: str | None = None
    assumed: Mapping[str, Shape] = field(default_factory=dict)

    def lines(self) -> dict[tuple[str, int], tuple[tuple[Shape, ...], tuple[Shape, ...]]]:
        """Return the shapes before the first and after the last operation of each line."""
        found: dict[tuple[str, int], tuple[tuple[Shape, ...], tuple[Shape, ...]]] = {}
        for step in self.steps:
            before, _ = found.get((step.file, step.line), (step.before, ()))
            found[step.file, step.line] = (before, step.after)
        return found


@dataclass(frozen=True, slots=True)
class Construction:
    """A call that builds a model, and the file it stands in."""

    module: Module
    call: ast.Call


def trace(
    project: Project,
    module: Module,
    cls: ast.ClassDef,
    inputs: Sequence[Sequence[int | None] | Shape | None] = (),
    built_by: Construction | None = None,
) -> ForwardTrace:
    """Follow a module class with the given input shapes; an unknown size is None.

    Inputs that are not given are inferred from the layer that takes them first.
    """
    given = [_as_shape(i) for i in inputs]
    first = _run(project, ClassRef(module, cls), given, built_by)
    if first.conflict is not None or not first.assumed:
        return first
    names_in_order = _input_names(project, ClassRef(module, cls))
    completed = [
        shape if shape is not None else first.assumed.get(name)
        for shape, name in zip(
            [*given, *[None] * len(names_in_order)], names_in_order, strict=False
        )
    ]
    second = _run(project, ClassRef(module, cls), completed, built_by)
    return replace(second, assumed=first.assumed)


def _as_shape(given: Sequence[int | None] | Shape | None) -> Shape | None:
    if given is None or isinstance(given, Shape):
        return given
    sizes: list[Dim] = [symbol(f"s{i}") if s is None else s for i, s in enumerate(given)]
    if sizes and given[0] is None:
        sizes[0] = symbol("B")
    return Shape(tuple(sizes))


def _input_names(project: Project, cls: ClassRef) -> list[str]:
    forward = names.method(ShapeMachine(project), cls, "forward")
    if forward is None or isinstance(forward.node, ast.Lambda):
        return []
    return [a.arg for a in (*forward.node.args.posonlyargs, *forward.node.args.args)][1:]


def _run(
    project: Project,
    cls: ClassRef,
    inputs: Sequence[Shape | None],
    built_by: Construction | None,
) -> ForwardTrace:
    def whole(machine: ShapeMachine) -> Value:
        return _forwarded(machine, cls, _built(machine, cls, built_by), inputs)

    return _interpreted(project, whole)


def _interpreted(project: Project, compute: Callable[[ShapeMachine], Value]) -> ForwardTrace:
    machine = ShapeMachine(project)
    result: Value = UNKNOWN
    conflict, reason = None, None
    try:
        result = compute(machine)
    except ConflictFound as found:
        conflict = found.conflict
    except GiveUp as end:
        reason = str(end)
    except RecursionError:
        reason = "the code recurses too deeply to follow"
    output = result if isinstance(result, tuple) else (result,)
    shapes = tuple(v.shape for v in output if isinstance(v, ShapedTensor))
    return ForwardTrace(
        tuple(machine.steps), shapes, conflict, reason, dict(machine.symbols.assumed)
    )


def _built(machine: ShapeMachine, cls: ClassRef, built_by: Construction | None) -> Value:
    """Make the model as the source makes it, or with defaults and symbols where it does not."""
    node: ast.expr = ast.copy_location(
        ast.Call(ast.Name(cls.node.name, ast.Load()), [], []), cls.node
    )
    frame = CallFrame(cls.module)
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    if built_by is not None:
        frame, node = CallFrame(built_by.module), built_by.call
        if any(isinstance(a, ast.Starred) for a in built_by.call.args):
            raise GiveUp("the model is built with arguments that cannot be counted")
        args = [_argument(machine, built_by, a, frame) for a in built_by.call.args]
        pairs = [(k.arg, k.value) for k in built_by.call.keywords]
        kwargs = {k: _argument(machine, built_by, v, frame) for k, v in pairs if k is not None}
    init = names.method(machine, cls, "__init__")
    if init is not None:
        args, kwargs = _with_symbols(init, args, kwargs)
    return machine.call(cls, args, kwargs, node, frame)


def _argument(
    machine: ShapeMachine, built_by: Construction, node: ast.expr, frame: CallFrame
) -> Value:
    """Evaluate an argument, through the one assignment of a local name."""
    if isinstance(node, ast.Name):
        bound = machine.project.lookup(built_by.module, built_by.call, node.id)
        if len(bound) == 1 and not isinstance(bound[0], ast.Name):
            return machine.evaluate(bound[0], frame)
    return machine.evaluate(node, frame)


def _with_symbols(
    init: FunctionRef, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """Let a parameter that nobody gives a value stand for an unknown number."""
    spec = init.node.args
    positional = [*spec.posonlyargs, *spec.args][1:]
    required = positional[: len(positional) - len(spec.defaults)]
    args = [_symbol_for(p) if a is UNKNOWN else a for p, a in zip(positional, args, strict=False)]
    for position, parameter in enumerate(positional):
        is_given = position < len(args) or parameter.arg in kwargs
        if (parameter in required and not is_given) or kwargs.get(parameter.arg) is UNKNOWN:
            kwargs = {**kwargs, parameter.arg: _symbol_for(parameter)}
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is None and parameter.arg not in kwargs:
            kwargs = {**kwargs, parameter.arg: _symbol_for(parameter)}
    return args, kwargs


def _symbol_for(parameter: ast.arg) -> Value:
    note = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    if note and note not in ("int", "Optional[int]", "int | None"):
        return UNKNOWN
    return symbol(parameter.arg)


def _forwarded(
    machine: ShapeMachine, cls: ClassRef, model: Value, inputs: Sequence[Shape | None]
) -> Value:
    forward = names.method(machine, cls, "forward")
    if not isinstance(model, Ref):
        return UNKNOWN
    if forward is None:
        shape = inputs[0] if inputs else None
        tensor = ShapedTensor(shape, "input") if shape is not None else ShapedTensor(origin="input")
        place = ast.copy_location(ast.Name("self", ast.Load()), cls.node)
        return machine.call(model, (tensor,), {}, place, CallFrame(cls.module, bound=model))
    if isinstance(forward.node, ast.Lambda):
        return UNKNOWN
    spec = forward.node.args
    parameters = [*spec.posonlyargs, *spec.args][1:]
    required = len(parameters) - len(spec.defaults)
    args: list[Value] = []
    for position, parameter in enumerate(parameters):
        shape = inputs[position] if position < len(inputs) else None
        if shape is None and position >= required:
            break
        known = shape if shape is not None else Shape((), True)
        args.append(ShapedTensor(known, parameter.arg))
    bound = FunctionRef(forward.module, forward.node, forward.around, model, forward.owner)
    return calls.call_function(machine, bound, args, {})


def trace_chain(project: Project, module: Module, call: ast.Call) -> ForwardTrace:
    """Follow a chain of layers that an expression builds, from an unknown input."""
    frame = CallFrame(module)
    return _interpreted(
        project,
        lambda m: m.call(m.evaluate(call, frame), (ShapedTensor(origin="input"),), {}, call, frame),
    )
