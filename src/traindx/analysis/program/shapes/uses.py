"""How the source uses a model class: where it builds one, and what it feeds to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes.datasets import sample_shape
from traindx.analysis.program.shapes.forward_traces import (
    Construction,
    ForwardTrace,
    trace,
    trace_chain,
)
from traindx.analysis.program.shapes.machine import Conflict, ConflictFound, ShapeMachine
from traindx.analysis.program.shapes.names import LIBRARY
from traindx.analysis.program.shapes.sizes import symbol
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.shapes.values import CallFrame, GiveUp, Shape, ShapedTensor
from traindx.analysis.program.syntax import Module, key_of
from traindx.analysis.program.written_kinds import WrittenKind, value_of

MOVES = frozenset({"to", "cuda", "cpu", "float", "half", "double", "long", "requires_grad_"})
MAX_USES = 4  # of one class; more are the same again


@dataclass(frozen=True, slots=True)
class Use:
    """A model as it is built, with the inputs that the source feeds to it, where they are known."""

    built_by: Construction | None
    inputs: tuple[Shape | None, ...] = ()
    origin: str = ""  # where the input shapes come from, in words

    @property
    def has_inputs(self) -> bool:
        return any(shape is not None for shape in self.inputs)


@dataclass(frozen=True, slots=True)
class TracedUse:
    """The trace of one use of a class."""

    module: Module
    cls: ast.ClassDef
    use: Use
    trace: ForwardTrace


def model_classes(project: Project) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Yield every class that derives from nn.Module."""
    for module in project.modules:
        for cls in module.classes.values():
            if project.is_module(module, cls):
                yield module, cls


@lru_cache(maxsize=4096)
def follow(project: Project, module: Module, cls: ast.ClassDef) -> tuple[TracedUse, ...]:
    """Trace a class in each way the source uses it; with inferred inputs where it does not."""
    return tuple(
        TracedUse(module, cls, use, trace(project, module, cls, use.inputs, use.built_by))
        for use in uses_of(project, module, cls)
    )


def uses_of(project: Project, module: Module, cls: ast.ClassDef) -> list[Use]:
    """Return the uses of a class, those with known inputs first."""
    constructions = list(_constructions(project, cls))
    found = [use for use in _calls(project, cls) if use.has_inputs]
    covered = {use.built_by.call for use in found if use.built_by is not None}
    found.extend(Use(c) for c in constructions if c.call not in covered)
    return found[:MAX_USES] or [Use(None)]


def _constructions(project: Project, cls: ast.ClassDef) -> Iterator[Construction]:
    for module, call, name in _all_calls(project).get(cls.name, ()):
        found = project.find_class(module, name)
        if found is not None and found[1] is cls and not _is_super(module, call):
            yield Construction(module, call)


@lru_cache(maxsize=8)
def _all_calls(project: Project) -> dict[str, list[tuple[Module, ast.Call, str]]]:
    """Every call in the project by the last part of the name of what is called."""
    found: dict[str, list[tuple[Module, ast.Call, str]]] = {}
    for module in project.modules:
        for call, name in module.calls():
            found.setdefault(name.rsplit(".", 1)[-1], []).append((module, call, name))
    return found


def _is_super(module: Module, call: ast.Call) -> bool:
    return isinstance(module.parents.get(call), ast.Attribute) and not call.args


def _calls(project: Project, cls: ast.ClassDef) -> Iterator[Use]:
    """Yield the calls of models of that class, with the shapes of their arguments."""
    for module, call, built, owner in _model_calls(project):
        if owner is cls:
            shapes = tuple(_input(project, module, call, a) for a in call.args)
            origin = f"{module.path}:{call.lineno}"
            yield Use(built, tuple(s for s, _ in shapes), _origin(shapes, origin))


@lru_cache(maxsize=8)
def _model_calls(
    project: Project,
) -> tuple[tuple[Module, ast.Call, Construction, ast.ClassDef], ...]:
    """Every call of a model whose construction the source shows."""
    found = []
    for module in project.modules:
        for call, name in module.calls():
            is_own = call.args and name.split(".", 1)[0] not in LIBRARY
            built = _callee(project, module, call) if is_own else None
            if built is not None:
                found.append((module, call, *built))
    return tuple(found)


def _origin(shapes: tuple[tuple[Shape | None, str], ...], call: str) -> str:
    named = next((text for shape, text in shapes if shape is not None), "")
    return named or f"the call at {call}"


def _callee(
    project: Project, module: Module, call: ast.Call
) -> tuple[Construction, ast.ClassDef] | None:
    """Return where the called model was built, and its class."""
    if isinstance(call.func, ast.Call):
        made: ast.Call | None = call.func
    elif key_of(call.func) is not None and key_of(call.func) != "self":
        at: ast.AST = module.function_of(call) or module.tree
        value = value_of(project, module, at, call.func)
        made = value.call if value.kind is WrittenKind.MODEL and value.is_certain else None
    else:
        made = None
    if made is None:
        return None
    for home in project.modules:
        if made in home.parents:
            found = project.find_class(home, home.qualified(made.func) or "")
            return (Construction(home, made), found[1]) if found is not None else None
    return None


def _input(
    project: Project, module: Module, call: ast.Call, node: ast.expr
) -> tuple[Shape | None, str]:
    """Return the shape of an argument, and where it is known from if not from the call."""
    made = _settled(project, module, call, node)
    if made is not None:
        machine = ShapeMachine(project)
        try:
            value = machine.evaluate(made, CallFrame(module))
        except (GiveUp, ConflictFound, RecursionError):
            return None, ""
        if isinstance(value, ShapedTensor) and value.shape.rank:
            return value.shape, ""
        return None, ""
    key = key_of(node) if isinstance(node, ast.Name) else None
    if key is not None and _is_batch(module, call, key):
        sample = sample_shape(project)
        if sample is not None:
            return Shape((symbol("B"), *sample.sizes)), sample.origin
    return None, ""


def _settled(project: Project, module: Module, call: ast.Call, node: ast.expr) -> ast.expr | None:
    """Return the expression that made a value, through one assignment and moves of it."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
            return _settled(project, module, call, node.func.value)
        return node
    if not isinstance(node, ast.Name):
        return None
    bound = [v for v in project.lookup(module, call, node.id) if not _is_moved(v, node.id)]
    if len(bound) != 1 or _is_loop_target(module, call, node.id):
        return None
    return bound[0] if isinstance(bound[0], ast.Call) else None


def _is_moved(value: ast.expr, name: str) -> bool:
    """Tell whether a value is `name.to(device)`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in MOVES and key_of(value.func.value) == name
    return False


def _is_loop_target(module: Module, at: ast.AST, name: str) -> bool:
    loops = (n for n in module.enclosing(at) if isinstance(n, ast.For))
    return any(name in _names(loop.target) for loop in loops)


def _names(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _is_batch(module: Module, call: ast.Call, name: str) -> bool:
    """Tell whether a name is what a loader gives, changed by nothing but moves to a device."""
    for loop in (n for n in module.enclosing(call) if isinstance(n, ast.For)):
        if name not in _names(loop.target):
            continue
        for node in ast.walk(loop):
            if isinstance(node, ast.Assign) and any(name in _names(t) for t in node.targets):
                parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                if not all(_is_moved(p, _moved_name(p)) for p in parts):
                    return False
        return True
    return False


def _moved_name(value: ast.expr) -> str:
    """Return the name that is moved in `name.to(device)`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return key_of(value.func.value) or ""
    return ""


def loose_chains(project: Project) -> Iterator[tuple[Module, ForwardTrace]]:
    """Trace every nn.Sequential that stands outside of module classes, from an unknown input."""
    for module in project.modules:
        for call, name in module.calls():
            if name == "torch.nn.Sequential" and _is_loose(project, module, call):
                yield module, trace_chain(project, module, call)


def _is_loose(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a chain is built of what the file itself says, and not part of another."""
    above = list(module.enclosing(call))
    if any(isinstance(n, ast.Call) for n in above):
        return False
    if any(isinstance(n, ast.ClassDef) and project.is_module(module, n) for n in above):
        return False
    inside = module.function_of(call) is not None
    used = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    return not inside or used <= module.aliases.keys()


def called_models(project: Project) -> list[tuple[Module, ForwardTrace]]:
    """Trace every model class that code outside of classes calls on something."""
    found = []
    for module, cls in model_classes(project):
        for use in _calls(project, cls):
            if use.built_by is not None and use.built_by.module.class_of(use.built_by.call) is None:
                found.append((module, trace(project, module, cls, use.inputs, use.built_by)))
                break
    return found


def contradictions(project: Project) -> Iterator[tuple[ForwardTrace, Conflict, str]]:
    """Yield where the sizes of layers contradict each other, each place once.

    With each comes the trace that meets it, and in words where the shapes of its inputs are from.
    """
    traces = [
        (f.trace, f.use.origin, f.use.has_inputs)
        for module, cls in model_classes(project)
        if not is_test_file(module)
        for f in follow(project, module, cls)
    ]
    chains = (chain for module, chain in loose_chains(project) if not is_test_file(module))
    traces += [(chain, "", False) for chain in chains]
    seen: set[tuple[str, int, int | None]] = set()
    for followed, origin, has_inputs in traces:
        conflict = followed.conflict
        is_guessed = not has_inputs or bool(followed.assumed)
        if conflict is None or (_is_about_rank(conflict) and is_guessed):
            continue
        key = (conflict.file, conflict.line, conflict.built_line)
        if key not in seen:
            seen.add(key)
            yield followed, conflict, origin


def _is_about_rank(conflict: Conflict) -> bool:
    """Tell whether it is the numbers of dimensions that differ; those of inputs may be a guess."""
    return isinstance(conflict.expected, str) and conflict.expected.endswith("D")
