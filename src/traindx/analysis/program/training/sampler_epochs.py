"""Samplers that shuffle by their epoch, and whether a loop over epochs tells it to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.examples import is_loader
from traindx.analysis.program.execution.loader_parts import attribute, is_sampler_of
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Result,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.data import Feed, feeds
from traindx.analysis.program.training.phases import Loop, Unit, training_loops

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SAMPLER = "torch.utils.data.DistributedSampler"


def epochs_not_set(story: Story) -> Iterator[tuple[Value, Loop]]:
    """Yield the samplers of training loops that are never told the epoch, and the loop."""
    for feed in feeds(story):
        sampler = feed.sampler
        made = None if sampler is None else _shuffling(sampler)
        loop = _epochs(feed) if made is not None and feed.trains else None
        if made is not None and loop is not None and not _is_set(story, feed, made, loop):
            yield made, loop


def _shuffling(sampler: Value) -> Value | None:
    """The distributed sampler that shuffles, be it one of several, or inside a batch sampler."""
    for option in options_of(attribute(sampler, "sampler") or sampler):
        if isinstance(option, Result) and option.maker == SAMPLER:
            given = option.args[3] if len(option.args) > 3 else option.kwargs.get("shuffle")
            return None if constant(given) is False else option
        if isinstance(option, Instance) and _waits_for_epoch(option):
            return option
    return None


def _waits_for_epoch(sampler: Instance) -> bool:
    """Tell whether a sampler of the project has an epoch to be told, and cannot count itself."""
    methods = {m for cls in sampler.cls.lineage() for m in cls.methods}
    has_own = not sampler.cls.foreign or all("Sampler" in f for f in sampler.cls.foreign)
    return {"set_epoch", "__iter__"} <= methods and has_own


def _epochs(feed: Feed) -> Loop | None:
    """The loop over epochs around the one that learns from a loader."""
    nodes = {run.site.node for run in feed.runs}
    for loop in training_loops(feed.story):
        if loop.unit is Unit.EPOCHS and any(x.run.site.node in nodes for x in loop.inner):
            return loop
    return None


def _is_set(story: Story, feed: Feed, made: Value, loop: Loop) -> bool:
    """Tell whether something in sight sets the epoch, or something out of sight may."""
    if any(e.by_framework for e in loop.events):
        return True
    if isinstance(made, Result):
        seed = made.args[4] if len(made.args) > 4 else made.kwargs.get("seed")
        if seed is not None and constant(seed) is None and _counts(seed):
            return True
    for event in story.events:
        if event.name.lstrip(".") == "set_epoch" and _may_tell(event, made, loop):
            return True
        is_store = event.act.value == "store" and event.name in ("epoch", "seed")
        if is_store and (loop.run.site.node in {r.site.node for r in event.loops}):
            return True
    return any(story.escapes(v) is not Answer.NO for v in (made, feed.loader))


def _may_tell(event: ProgramEvent, made: Value, loop: Loop) -> bool:
    """Tell whether a call of `set_epoch` may be the sampler's own, in every epoch."""
    receiver = event.receiver
    if receiver is None or _is_lost(receiver):
        return receiver is None
    known = [v for v in options_of(receiver) if isinstance(v, (Instance, Result))]
    is_certain = len(known) == len(options_of(receiver))
    is_another = is_certain and not any(v is made for v in known)
    is_another = is_another and all(_shuffling(v) is not None or _is_sampler(v) for v in known)
    is_inside = any(run.site.node is loop.run.site.node for run in event.loops)
    return not is_another and (is_inside or not is_certain)


def _is_sampler(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == SAMPLER


def _counts(seed: Value) -> bool:
    return any(isinstance(v, Result) and v.maker == "builtins.next" for v in origins(seed))


def _is_lost(receiver: Value | None) -> bool:
    """Tell whether `set_epoch` is asked of loaders or other samplers, which have none."""
    if receiver is None:
        return False
    members = receiver.members if isinstance(receiver, Items) else options_of(receiver)
    return all(
        is_loader(v) or (isinstance(v, Result) and is_sampler_of(v, (SAMPLER,)) is False)
        for v in members
    )
