"""The phases of a training program: where it evaluates, and in which mode its models are then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from traindx.source.acts import Act, Do, acts_of
from traindx.source.loaders import phase_of
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

LEARNS = frozenset(
    {Do.BACKWARD, Do.STEP, Do.SCALER_STEP, Do.ZERO_GRAD, Do.GRAD, Do.MANUAL_UPDATE, Do.UNSCALE}
)
# what a loop over batches goes over, by its name
LOADER = re.compile(r"load|(?:^|_)dl$|batches|(?:^|_)iter(?:ator)?$", re.IGNORECASE)
REPEATS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
HELD_OUT = ("val", "test", "evaluation")
NO_GRAD = ("no_grad", "inference_mode", "set_grad_enabled", "no_grad_guard", "set_grad_mode")


@dataclass(frozen=True, eq=False)
class Entry:
    """A scope that no other scope in sight calls, with everything done from there, in order."""

    module: Module
    scope: ast.Module | Function
    acts: tuple[Act, ...]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Where a model runs on validation or test data and learns nothing.

    That is a loop over batches, or a block without gradients in which all data go in at once.
    """

    entry: Entry
    module: Module
    block: ast.For | ast.With
    forward: Act
    phase: str


def entries(project: Project) -> tuple[Entry, ...]:
    """Return where the project's programs start, as far as they are in sight."""
    return _entries(project)


@lru_cache(maxsize=8)
def _entries(project: Project) -> tuple[Entry, ...]:
    found = []
    for module in project.training_modules:
        scopes: list[ast.Module | Function] = [module.tree, *module.functions.values()]
        for scope in scopes:
            acts = acts_of(project, module, scope)
            if acts and not _is_driven(project, module, scope):
                found.append(Entry(module, scope, tuple(acts)))
    called = {a.function for e in found for a in e.acts if a.function is not e.scope}
    return tuple(e for e in found if e.scope not in called)


def _is_driven(project: Project, module: Module, scope: ast.Module | Function) -> bool:
    """Tell whether a framework decides when this code runs and in which mode."""
    cls = None if isinstance(scope, ast.Module) else module.class_of(scope)
    if cls is None:
        return False
    names = project.bases(module, cls) - {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
    # a base class out of sight may do anything, and a module's mode is set by its user
    return any(project.find_class(module, n) is None for n in names)


def evaluations(project: Project) -> tuple[Evaluation, ...]:
    """Return where the project evaluates a model on held-out data."""
    return _evaluations(project)


@lru_cache(maxsize=8)
def _evaluations(project: Project) -> tuple[Evaluation, ...]:
    return tuple(e for entry in entries(project) for e in _of_entry(project, entry))


def _of_entry(project: Project, entry: Entry) -> Iterator[Evaluation]:
    seen: set[ast.AST] = set()
    for act in entry.acts:
        loop = act.loops[-1] if act.loops else None
        if act.do is not Do.FORWARD or loop in seen:
            continue
        inside = [a for a in entry.acts if loop in a.loops]
        learns = any(a.do in LEARNS for a in inside)
        if loop is None or learns:
            yield from _at_once(entry, act, seen)
        elif isinstance(loop, ast.For):
            seen.add(loop)
            home = next((m for m in (act.module, *project.modules) if loop in m.parents), None)
            module = home or act.module
            phase = _phase(module, loop) or _by_mode(module, loop, entry, act)
            if phase in HELD_OUT:
                yield Evaluation(entry, module, loop, act, phase)


def _by_mode(module: Module, loop: ast.For, entry: Entry, forward: Act) -> str:
    """A function that sets evaluation mode and learns nothing evaluates, whatever its name."""
    names = [k for n in ast.walk(loop.iter) if (k := key_of(n))]
    function = module.function_of(loop)
    if function is None or any(phase_of(n) for n in (*names, function.name)):
        return ""
    inside = [a for a in entry.acts if a.function is function]
    if any(a.do in LEARNS for a in inside) or not any(LOADER.search(n) for n in names):
        return ""
    modes = (a for a in inside if a.do is Do.EVAL_MODE and a.line < forward.line)
    return "evaluation" if any(is_same_model(a, forward) for a in modes) else ""


def _at_once(entry: Entry, act: Act, seen: set[ast.AST]) -> Iterator[Evaluation]:
    """Yield the block without gradients around a pass, where all it speaks of is held-out data.

    A pass that is repeated in one expression samples: of dropout, or of noise.
    """
    around = list(act.module.enclosing(act.node))
    blocks = (n for n in around if isinstance(n, ast.With))
    block = next((b for b in blocks if any(_switches_off(i) for i in b.items)), None)
    if block is None or block in seen or any(isinstance(n, REPEATS) for n in around):
        return
    seen.add(block)
    names = {k for s in block.body for n in ast.walk(s) if (k := key_of(n))}
    phases = {p for n in names if (p := phase_of(n))}
    if len(phases) == 1 and (phase := phases.pop()) in HELD_OUT:
        yield Evaluation(entry, act.module, block, act, phase)


def _switches_off(item: ast.withitem) -> bool:
    called = item.context_expr
    name = key_of(called.func) if isinstance(called, ast.Call) else None
    return (name or "").rsplit(".", 1)[-1] in ("no_grad", "inference_mode")


def _phase(module: Module, loop: ast.For) -> str:
    """The phase by the name of what is looped over, else by the name of the function."""
    names = [k for n in ast.walk(loop.iter) if (k := key_of(n))]
    if not any(LOADER.search(n) for n in names):
        return ""
    phases = {p for n in names if (p := phase_of(n))}
    if phases:
        return next(iter(phases)) if len(phases) == 1 else ""
    function = module.function_of(loop)
    return phase_of(function.name) if function is not None else ""


def is_same_model(first: Act, second: Act) -> bool:
    """Tell whether two acts are on one model: made by one call, else of one name."""
    if first.value.call is not None and second.value.call is not None:
        return first.value.call is second.value.call
    return first.target == second.target


def mode_before(entry: Entry, forward: Act) -> Act | None:
    """Return the last change of mode of a model before it runs, in the order of the program."""
    before = entry.acts[: entry.acts.index(forward)]
    modes = (a for a in reversed(before) if a.do in (Do.TRAIN_MODE, Do.EVAL_MODE))
    return next((a for a in modes if is_same_model(a, forward)), None)


def is_without_gradients(act: Act) -> bool:
    """Tell whether an act runs where no gradients are recorded, or where that is decided late."""
    return any(c.rsplit(".", 1)[-1] in NO_GRAD for c in act.contexts)
