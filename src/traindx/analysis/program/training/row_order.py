"""In which order examples stand: what puts inputs or labels in a random order, and which one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import (
    SEEDS,
    batch_part,
    data_chain,
    feeds,
    is_draw,
    loader_behind,
)
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PERMUTED = ("randperm", "permutation", "permuted")
COUNTS = frozenset({"builtins.slice", "builtins.len", "builtins.range", ".size"})
SHUFFLES = ("numpy.random.shuffle", "random.shuffle", ".shuffle")


@dataclass(frozen=True, eq=False)
class Reordering:
    """A step that puts data in a random order; `order` is the same where two data share it."""

    moved: Value
    order: object


def reorderings(story: Story, value: Value) -> Iterator[Reordering]:
    """Yield what puts data in a random order on their way to a value, nearest first.

    An order that a seed just before makes repeatable is none: another may be the same.
    """
    for step in data_chain(story, value):
        order = _order(step)
        if order is not None and not _is_seeded(story, order):
            yield Reordering(step, order)
        yield from (Reordering(step, event) for event in _shuffles(story, step))
        loader = loader_behind(step)
        if loader is not None and _is_shuffled_loader(story, loader):
            yield Reordering(step, loader)


def _shuffles(story: Story, data: Value) -> list[ProgramEvent]:
    """Return where data are shuffled in place."""
    return [
        e
        for e in story.events
        if e.name in SHUFFLES and e.args and e.args[0] is data
        and not isinstance(data, Items) and not _is_drawn_alike(story, e)
    ]  # fmt: skip


def _is_shuffled_loader(story: Story, loader: Value) -> bool:
    """Tell whether a loader draws an order of its own."""
    feed = next((f for f in feeds(story) if f.loader is loader), None)
    if feed is None or feed.shuffles is not Answer.YES:
        return False
    return not {"generator", "sampler"} & set(feed.settings)


def lone_reorderings(
    story: Story, value: Value, others: list[Value], scores: Value | None = None
) -> Iterator[Reordering]:
    """Yield what puts data in an order that none of the other data, of the same rows, share.

    Nor the scores, where they are given: a label that a generator gets is what it is to make.
    """
    ways = {id(v) for o in others for v in _made_of(story, o)}
    ways |= {id(v) for v in origins(scores)} if scores is not None else set()
    shared = {id(r.order) for o in others for r in reorderings(story, o)}
    for found in reorderings(story, value):
        if id(found.order) not in ways | shared and id(found.moved) not in ways:
            yield found


def _made_of(story: Story, value: Value) -> Iterator[Value]:
    """Yield what data are made of: what only counts or bounds their rows has no order of them."""
    pending = [v for v in data_chain(story, value) if batch_part(story, v) is v]
    seen = {id(v) for v in pending}
    while pending:
        found = pending.pop()
        yield found
        counts = isinstance(found, Result) and found.maker in COUNTS
        is_shape = isinstance(found, Part) and found.key == "shape"
        for below in () if counts or is_shape else found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


def _order(step: Value) -> Value | None:
    """Return the random order in which a step takes rows."""
    operation = operation_of(step)
    if operation is None or not isinstance(step, Result):
        return None
    if operation.name == "getitem":
        order = whole_tensor(step.args[1])
        return order if _is_permutation(order) else None
    last = step.maker.rsplit(".", 1)[-1]
    if last == "sample" and constant(step.kwargs.get("frac")) == 1:
        return step  # the rows of a table, all of them
    is_own = last == "permutation" and is_draw(step) and bool(step.args)
    return step if is_own and constant(step.args[0]) is None else None


def _is_permutation(value: Value) -> bool:
    return (
        is_draw(value) and isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in PERMUTED
    )


def _is_seeded(story: Story, order: Value) -> bool:
    """Tell whether a seed is set just before: with one before each, two orders are the same."""
    drawn = next((e for e in story.events if e.result is order), None)
    return drawn is None or _is_drawn_alike(story, drawn)


def _is_drawn_alike(story: Story, drawn: ProgramEvent) -> bool:
    """Tell whether a generator is seeded just before a draw, and before another as well."""
    seeds = [e for e in story.events if e.name.rsplit(".", 1)[-1] in SEEDS]
    others = [e for e in story.events if e.result is not None and is_draw(e.result)]
    for seed in seeds:
        between = [e for e in others if seed.order < e.order < drawn.order]
        is_before = seed.order < drawn.order and seed.turns == drawn.turns
        again = [e for e in seeds if e.name == seed.name]
        if is_before and not between and (drawn.turns or len(again) > 1):
            return True
    return False
