"""The number type that torch gives to what is made without one, where the program sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Result, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindx.analysis.program.training.program import Story

SETS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
READS = "torch.get_default_dtype"
FIRST = "float32"


def default_dtype(
    story: Story, order: int, named: Callable[[Value | None], str], depth: int = 4
) -> str:
    """Return the default type before the event of that order; empty where it is not known.

    `named` says which type a value names.
    """
    setting = next((e for e in reversed(_settings(story)) if e.order < order), None)
    if setting is None:
        return FIRST
    given = setting.argument("d", 0)
    if setting.guards or depth == 0:
        return ""
    if isinstance(given, Result) and given.maker == READS:  # what it was before is put back
        read = story.giver_of(given)
        return "" if read is None else default_dtype(story, read.order, named, depth - 1)
    return named(given)


def _settings(story: Story) -> list[ProgramEvent]:
    return story.recall(_found_settings)


def _found_settings(story: Story) -> list[ProgramEvent]:
    return list(story.index.named(*SETS))
