"""Held-out data of which nothing is left: loaders without a batch, slices without a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Result,
    Value,
    options_of,
    origins,
)
from traindx.analysis.program.training.data import Feed, Role, feeds
from traindx.analysis.program.training.lengths import batches_of, length_of_data
from traindx.analysis.program.training.phases import evaluations, phase_word
from traindx.analysis.program.training.settings import is_zero

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PARTS = ("validation", "test")


@dataclass(frozen=True, eq=False)
class EmptyFeed:
    """What has nothing to give, whatever the data are, where it is read, and why."""

    name: str
    data: Value
    at: Value
    reason: str


def empty_feeds(story: Story) -> Iterator[EmptyFeed]:
    """Yield the loaders, slices and loops of held-out data that never give anything."""
    found = [*_loaders(story), *_loops(story)]
    yield from found or _slices(story)


def _loaders(story: Story) -> Iterator[EmptyFeed]:
    for feed in feeds(story):
        data = feed.dataset
        if data is None or feed.role is not Role.HELD_OUT or feed.loader.site is None:
            continue
        reason = "" if story.escapes(data) is Answer.YES else _emptiness(story, feed, data)
        if reason:
            yield EmptyFeed(feed.name, data, feed.loader, reason)


def _emptiness(story: Story, feed: Feed, data: Value) -> str:
    rows = length_of_data(story, data)
    if rows == 0:
        return "" if _is_asked_for(story, data) else "what it reads is always empty"
    if rows is None or batches_of(story, feed.loader) != 0:
        return ""
    return f"{rows} examples do not fill one batch, and drop_last leaves it out"


def _loops(story: Story) -> Iterator[EmptyFeed]:
    """`for i in range(len(x) // size)` with fewer rows than a batch."""
    for evaluation in evaluations(story):
        over = None if evaluation.loop is None else evaluation.loop.over
        if not isinstance(over, Result) or over.maker != "builtins.range" or over.site is None:
            continue
        if length_of_data(story, over) == 0 and not _is_asked_for(story, over):
            yield EmptyFeed("the evaluation loop", over, over, "its range has no turn")


def _slices(story: Story) -> Iterator[EmptyFeed]:
    """Parts that are named as held out and begin where the rows end."""
    for made in story.execution.assignments:
        value = made.value
        if not isinstance(value, Result) or value.maker != "operator.getitem":
            continue
        is_slice = len(value.args) == 2 and getattr(value.args[1], "maker", "") == "builtins.slice"
        if not is_slice or value.site is None or phase_word(made.name) not in PARTS:
            continue
        is_left = length_of_data(story, value) != 0 or not length_of_data(story, value.args[0])
        if not is_left and not _is_asked_for(story, value):
            yield EmptyFeed(made.name, value, value, "no row is left for it")


def _is_asked_for(story: Story, data: Value) -> bool:
    """Tell whether a setting or a number in the source says that there shall be nothing."""
    if isinstance(data, Result) and data.maker == "operator.getitem":
        return any(is_zero(story, v) for v in data.args[1].inputs[1:2])
    if isinstance(data, Result) and data.maker == "builtins.range":
        return any(len(options_of(v)) > 1 or is_zero(story, v) for v in data.args[-1:])
    return any(is_zero(story, v) for v in origins(data, 6) if not isinstance(v, Known))
