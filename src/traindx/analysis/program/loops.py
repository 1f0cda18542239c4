"""The training loops of a project: which loops train, and what each of them does in order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module
from traindx.analysis.program.written_acts import WrittenAct, WrittenDo, acts_of

TRAINS = {WrittenDo.BACKWARD, WrittenDo.STEP, WrittenDo.SCALER_STEP, WrittenDo.ZERO_GRAD}
COMPUTES = {WrittenDo.FORWARD, WrittenDo.LOSS}


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """An outermost loop that trains, with everything done in it, in order."""

    module: Module
    node: ast.AST
    acts: tuple[WrittenAct, ...]
    function: Function | None

    def does(self, *kinds: WrittenDo) -> list[WrittenAct]:
        return [a for a in self.acts if a.do in kinds]

    def first(self, *kinds: WrittenDo) -> WrittenAct | None:
        return next(iter(self.does(*kinds)), None)


def training_loops(project: Project) -> tuple[TrainingLoop, ...]:
    """Return the outermost loops that train; a loop that another one calls into is left to it."""
    return _training_loops(project)


@lru_cache(maxsize=8)
def _training_loops(project: Project) -> tuple[TrainingLoop, ...]:
    loops = [loop for scope in _scopes(project) for loop in _loops_in(project, *scope)]
    covered = {a.function for loop in loops for a in loop.acts if a.function is not loop.function}
    return tuple(loop for loop in loops if loop.function is None or loop.function not in covered)


def _scopes(project: Project) -> Iterator[tuple[Module, ast.Module | Function]]:
    for module in project.training_modules:
        yield module, module.tree
        for function in module.functions.values():
            yield module, function


def _loops_in(
    project: Project, module: Module, scope: ast.Module | Function
) -> Iterator[TrainingLoop]:
    function = None if isinstance(scope, ast.Module) else scope
    groups: dict[ast.AST, list[WrittenAct]] = {}
    for act in acts_of(project, module, scope):
        # a loop in a function that this scope calls belongs to that function's own analysis,
        # unless the call itself stands in a loop here
        if act.loops:
            groups.setdefault(act.loops[0], []).append(act)
    for node, acts in groups.items():
        kinds = {a.do for a in acts}
        if kinds & TRAINS and (kinds & COMPUTES or WrittenDo.BACKWARD in kinds):
            yield TrainingLoop(module, node, tuple(acts), function)
