"""Loaders of held-out data that never give a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.data import Feed, Role, feeds
from traindx.analysis.program.training.lengths import batches_of, length_of_data

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class EmptyFeed:
    """A loader that has nothing to give, whatever the data are, and why."""

    feed: Feed
    reason: str


def empty_feeds(story: Story) -> Iterator[EmptyFeed]:
    """Yield the loaders of held-out data that never give a batch."""
    for feed in feeds(story):
        data = feed.dataset
        if data is None or feed.role is not Role.HELD_OUT or feed.loader.site is None:
            continue
        reason = "" if story.escapes(data) is Answer.YES else _emptiness(story, feed, data)
        if reason:
            yield EmptyFeed(feed, reason)


def _emptiness(story: Story, feed: Feed, data: Value) -> str:
    rows = length_of_data(story, data)
    if rows == 0:
        return "what it reads is always empty"
    if rows is None or batches_of(story, feed.loader) != 0:
        return ""
    return f"{rows} examples do not fill one batch, and drop_last leaves it out"
