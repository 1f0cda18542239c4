"""Data whose name a batch takes, so that the next epoch goes over that batch alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Assignment, LoopRun
from traindx.analysis.program.execution.values import Items, Result, Value, origins
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.operations import name_of_operation

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

NEAR = 200  # values from what a loop goes over to what it was made of


@dataclass(frozen=True, slots=True, eq=False)
class OverwrittenData:
    """A name that holds all data before a loop, and one batch of it after."""

    assignment: Assignment
    loop: LoopRun


def overwritten_data(story: Story) -> Iterator[OverwrittenData]:
    """Yield the names of data that are given to a batch, and read as the whole data again."""
    runs = _loops_with_passes(story)
    for assignment in story.execution.assignments:
        loop = assignment.turns[-1].loop if assignment.turns else None
        if loop is None or loop.site.node not in runs:
            continue
        if _is_target(assignment, loop):
            later = (run for run in runs[loop.site.node] if run is not loop)
            is_left_behind = not _goes_over(loop, assignment.value)  # no member of a list
            if is_left_behind and any(_goes_over(run, assignment.value) for run in later):
                yield OverwrittenData(assignment, loop)
        elif _is_cut_again(assignment):
            yield OverwrittenData(assignment, loop)


def _loops_with_passes(story: Story) -> dict[object, list[LoopRun]]:
    """Return the runs of the loops in which a model is run, by their statements."""
    found: dict[object, dict[int, LoopRun]] = {}
    for deed in story.does(Do.FORWARD):
        for loop in deed.event.loops:
            found.setdefault(loop.site.node, {})[id(loop)] = loop
    return {node: list(runs.values()) for node, runs in found.items()}


def _is_target(assignment: Assignment, loop: LoopRun) -> bool:
    """Tell whether a name is the variable of a loop."""
    statement = loop.site.node
    if not isinstance(statement, (ast.For, ast.AsyncFor)):
        return False
    return any(node is assignment.site.node for node in ast.walk(statement.target))


def _goes_over(run: LoopRun, element: Value) -> bool:
    """Tell whether a loop goes over something that an element is in, or was made into."""
    return run.over is not None and any(v is element for v in origins(run.over, NEAR))


def _is_cut_again(assignment: Assignment) -> bool:
    """`x = x[i:i + n]`: the second batch is cut out of the first, by the number of the turn."""
    first = _cut_of(assignment.value)
    second = _cut_of(first[0]) if first is not None else None
    if first is None or second is None:
        return False
    sites = {id(v.site.node) for v in (assignment.value, first[0]) if v.site is not None}
    is_same_place = len(sites) == 1 and all(v.site is not None for v in (first[0],))
    return is_same_place and _counts(first[1]) and assignment.name in first[0].names


def _cut_of(value: Value) -> tuple[Value, Value] | None:
    """Return what a subscript is taken of, and its key."""
    is_cut = isinstance(value, Result) and name_of_operation(value) == "getitem"
    return (value.args[0], value.args[1]) if isinstance(value, Result) and is_cut else None


def _counts(key: Value) -> bool:
    """Tell whether a slice begins at the number of a turn."""
    key = key.members[0] if isinstance(key, Items) and key.members else key
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice" and bool(key.args)
    if not is_slice or not isinstance(key, Result):
        return False
    return any(isinstance(v, Result) and v.maker == "builtins.next" for v in origins(key.args[0]))
