"""The order of training data across a restart: what decides it, and whether a run goes on in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.iteration import NUMBERED
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Part,
    Result,
    Value,
    constant,
    depends_on,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import COMPARED, LoadedCheckpoint, loads
from traindx.analysis.program.training.data import GENERATORS, Feed, feeds
from traindx.analysis.program.training.kinds import Kind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what takes up a position again, or the state of what draws
TAKES_UP = ("skip_first_batches", "islice", "set_state", "set_epoch", "seek", "skip", "setstate",
            "fast_forward", "bit_generator", "advance", "drop")  # fmt: skip
# what makes the order of an epoch out of its number
SHUFFLES = ("set_epoch", "manual_seed", "seed", "default_rng", "RandomState")
RESTORED = (Kind.MODEL, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)


@dataclass(frozen=True, eq=False)
class LostOrder:
    """A run that goes on in the middle of its data and begins with their first batch again."""

    checkpoint: LoadedCheckpoint
    save: Deed
    order: Value  # what gives the same order at every start


def lost_orders(story: Story) -> Iterator[LostOrder]:
    """Yield the runs that resume in the middle of an epoch, whose data begin anew."""
    for checkpoint in loads(story):
        if not checkpoint.is_resumed or checkpoint.is_open or _takes_up(story, checkpoint):
            continue
        for step in story.does(Do.STEP):
            save = _saved_among_batches(story, step)
            order = None if save is None else _fixed_order(story, step)
            if save is not None and order is not None:
                yield LostOrder(checkpoint, save, order)
                break


@dataclass(frozen=True, eq=False)
class RestartedCount:
    """A shuffle by the number of the epoch, which a run that goes on counts from 0 again."""

    checkpoint: LoadedCheckpoint
    event: ProgramEvent


def restarted_counts(story: Story) -> Iterator[RestartedCount]:
    """Yield the orders of a resumed run that are told its turns, where they mean the epoch."""
    checkpoints = [c for c in loads(story) if c.is_resumed and not c.is_open]
    for event in story.events if checkpoints else ():
        last = event.name.rsplit(".", 1)[-1]
        if last not in SHUFFLES or not event.args or not event.turns:
            continue
        for checkpoint in checkpoints:
            if _is_counted_anew(story, event, checkpoint.value):
                yield RestartedCount(checkpoint, event)


@dataclass(frozen=True, eq=False)
class OverwrittenPosition:
    """A position in the data that is restored, and set to its start before the data are read."""

    restored: ProgramEvent
    overwritten: ProgramEvent
    name: str


def overwritten_positions(story: Story) -> Iterator[OverwrittenPosition]:
    """Yield the attributes of samplers and datasets that lose what a checkpoint restored."""
    stores = [e for e in story.events if e.act is EventForm.STORE and e.name.isidentifier()]
    for checkpoint in loads(story):
        restored = {(id(e.receiver), e.name): e for e in stores
                    if e.args and depends_on(e.args[0], checkpoint.value)}  # fmt: skip
        for event in stores if restored else ():
            first = restored.get((id(event.receiver), event.name))
            is_start = bool(event.args) and constant(event.args[0]) == 0
            if first is None or not is_start or event.order < first.order:
                continue
            is_sure = all(g in first.guards for g in event.guards)
            if is_sure and _decides_order(story, event) and _is_at_epoch(story, event, first):
                yield OverwrittenPosition(first, event, event.name)


def _decides_order(story: Story, event: ProgramEvent) -> bool:
    """Tell whether an object that is written to hands out examples, or their order."""
    owner = event.receiver
    bases = owner.cls.foreign if isinstance(owner, Instance) else ()
    if not any(base.endswith(("Sampler", "Dataset")) for base in bases):
        return False
    return any(owner in (f.sampler, f.dataset) for f in feeds(story))


def _is_at_epoch(story: Story, event: ProgramEvent, first: ProgramEvent) -> bool:
    """Tell whether it is written in the first turn of a training loop, before its batches."""
    steps = [d.event for d in story.does(Do.STEP)]
    turns = [t for t in event.turns if t not in first.turns]
    around = [t.loop.site.node for t in turns]
    return len(turns) == 1 and turns[0].number == 0 and any(
        around[0] in [r.site.node for r in s.loops] and s.order > event.order for s in steps
    )  # fmt: skip


def _is_counted_anew(story: Story, event: ProgramEvent, checkpoint: Value) -> bool:
    """Tell whether a number counts the turns of a loop that begins where a checkpoint ends."""
    tests = [g.test for g in event.guards if g.test is not None]
    loops = [r for r in event.loops if r.over is not None and depends_on(r.over, checkpoint)]
    trains = [r for r in loops if _steps(story, r.site.node)]
    if not trains or any(depends_on(t, checkpoint) for t in tests):
        return False
    found = list(origins(event.args[0], 60))
    counts = [v for v in found if isinstance(v, Result) and v.maker == "builtins.range"]
    others = [v for v in found if isinstance(v, Part) and v.of is checkpoint]
    ends = [v for c in counts for a in c.args for v in origins(a, 60)]
    is_shifted = any(not any(v is e for e in ends) for v in others)
    return bool(counts) and all(map(_is_from_zero, counts)) and not is_shifted


def _is_from_zero(counted: Result) -> bool:
    """`enumerate(x)`, `range(n)`: neither is told where to begin."""
    is_numbered = not counted.args and NUMBERED in counted.fields
    return is_numbered or (len(counted.args) == 1 and not counted.kwargs)


def _saved_among_batches(story: Story, step: Deed) -> Deed | None:
    """What is saved in the loop over batches, some of its turns: not at the end of an epoch."""
    inner = step.event.loops[-1].site.node if step.event.loops else None
    for save in story.does(Do.SAVE):
        loops = [run.site.node for run in save.event.loops]
        if inner in loops and len(save.event.guards) > len(step.event.guards):
            return save
    return None


def _fixed_order(story: Story, step: Deed) -> Value | None:
    """What gives training its batches in the same order at every start of the program."""
    inner = step.event.loops[-1].site.node
    passes = [d.event for d in story.does(Do.FORWARD) if not d.event.within and d.event.loops]
    inputs = [a for e in passes if e.loops[-1].site.node is inner and e.gradients is Answer.YES
              for a in (*e.args, *e.kwargs.values())]  # fmt: skip
    given = {id(v): v for a in inputs for v in origins(a)}
    for feed in feeds(story):
        if id(feed.loader) in given:
            return _order_of(story, feed)
    return next((v for v in given.values() if _is_seeded(story, v) and _is_order(v, given)), None)


def _order_of(story: Story, feed: Feed) -> Value | None:
    if feed.loader.maker.endswith("StatefulDataLoader") or "**" in feed.loader.kwargs:
        return None
    sampler, generator = feed.sampler, feed.settings.get("generator")
    if isinstance(sampler, Result):
        generator = sampler.kwargs.get("generator")
    if generator is not None:
        return generator if _is_seeded(story, generator) else None
    is_plain = sampler is None and feed.shuffles is Answer.NO
    return feed.loader if is_plain and not _is_stream(feed) else None


def _is_stream(feed: Feed) -> bool:
    """Tell whether the dataset, and not the loader, decides the order."""
    dataset = feed.dataset
    bases = getattr(getattr(dataset, "cls", None), "foreign", ())
    return dataset is None or any("Iterable" in base for base in bases)


def _is_seeded(story: Story, value: Value) -> bool:
    """Tell whether a value is a random generator that begins at the same seed every time."""
    made = value
    while isinstance(made, Result) and made.maker == ".manual_seed" and made.receiver is not None:
        made = made.receiver
    if not isinstance(made, Result) or made.maker not in GENERATORS:
        return False
    states = (".get_state", ".getstate", ".set_state", ".setstate", ".__setstate__", ".advance")
    used = story.index.on(made, value)
    if any(e.name in states for e in used) or any(_is_read(v, made) for v in story.values):
        return False
    seeds = [e.args[0] for e in used if e.name in (".manual_seed", ".seed") and e.args]
    return bool(seeds) or (made is value and bool(made.args) and made.maker != "torch.Generator")


def _is_read(value: Value, generator: Value) -> bool:
    """Tell whether the state of a generator of NumPy is looked at: `rng.bit_generator.state`."""
    return isinstance(value, Part) and value.of is generator and value.key == "bit_generator"


def _is_order(generator: Value, given: dict[int, Value]) -> bool:
    """Tell whether a generator shuffles the indices of batches that are cut out by hand."""
    names = ("randperm", "permutation", "shuffle")
    return any(
        isinstance(v, Result) and v.maker.rsplit(".", 1)[-1] in names
        and any(i is generator for i in v.inputs) for v in given.values()
    )  # fmt: skip


def _takes_up(story: Story, checkpoint: LoadedCheckpoint) -> bool:
    """Tell whether something skips what was seen, or restores what draws, or may."""
    kinds = (story.kind_of(d.subject).kind for d in checkpoint.restored)
    if any(kind not in RESTORED for kind in kinds):
        return True
    return any(_may_skip(e, checkpoint.value) for e in story.events) or any(
        depends_on(loop.over, checkpoint.value) and not _steps(story, loop.site.node)
        for loop in story.loops
        if loop.over is not None
    )


def _steps(story: Story, node: object) -> bool:
    return any(node in [r.site.node for r in d.event.loops] for d in story.does(Do.STEP))


def _may_skip(event: ProgramEvent, checkpoint: Value) -> bool:
    last = event.name.rsplit(".", 1)[-1]
    given = [*event.args, *event.kwargs.values()]
    if last in TAKES_UP and event.name != "torch.set_rng_state":
        return True
    is_seed = last in ("manual_seed", "seed", "default_rng", "RandomState")
    if not is_seed and event.name not in COMPARED and not event.is_own:
        return False
    touched = [v for v in given if depends_on(v, checkpoint)]
    if event.name in COMPARED:  # the number of a batch against that of the last one
        others = [v for v in given if v not in touched]
        return bool(touched) and any(_is_turn(v) for v in others)
    return is_seed and bool(touched)


def _is_turn(value: Value) -> bool:
    return any(
        isinstance(v, Result) and v.maker == "builtins.next" and constant(v.args[0]) is None
        for v in origins(value, 30)
        if isinstance(v, Result) and v.args
    )
