"""Whether the workers of a loader draw the same random numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Instance,
    Known,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.data import Feed, draws_in, feeds, is_generator_of_numbers
from traindx.analysis.program.training.seeds import drawn, seeded
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, slots=True, eq=False)
class SharedDraws:
    """What makes workers draw alike: a generator that all have, or a seed that all set."""

    feed: Feed
    at: Value | ProgramEvent
    name: str
    why: str


def shared_draws(story: Story) -> Iterator[SharedDraws]:
    """Yield why the workers of a loader draw the same numbers, for each loader where they do."""
    yield from (found for feed in feeds(story) if (found := _shared(feed)) is not None)


def _shared(feed: Feed) -> SharedDraws | None:
    """Return why all workers of a loader draw the same numbers; None where they do not."""
    if not _has_workers(feed):
        return None
    init = feed.settings.get("worker_init_fn")
    if init is None or (isinstance(init, Known) and init.value is None):
        return _copied(feed)
    return _seeded_alike(feed)


def _has_workers(feed: Feed) -> bool:
    """Tell whether several workers read, or a number of them that is not in sight."""
    workers = feed.settings.get("num_workers")
    counts = constants_of(feed.story, workers)
    is_several = any(isinstance(count, int) and count >= 2 for count in counts)
    return is_several or (workers is not None and not counts)


def _events(feed: Feed) -> tuple[ProgramEvent, ...]:
    return () if feed.example is None else feed.example.events


def _copied(feed: Feed) -> SharedDraws | None:
    """The generator that examples are made with and that every worker has a copy of."""
    events = _events(feed)
    if any("worker" in e.name and _may_tell_apart(e, events) for e in events):
        return None
    fresh = {id(e.result) for e in events}
    for event in draws_in(events):
        result = event.result
        source = result.receiver if isinstance(result, Result) else None
        if source is None or not is_generator_of_numbers(source):
            continue
        name = source.called("a generator")
        if id(source) not in fresh:
            return SharedDraws(
                feed, source, name, f"`{name}` is made once and copied into every worker"
            )
        if _is_stream(feed.dataset) and _is_fixed(source):
            return SharedDraws(
                feed, source, name, f"every worker makes `{name}` with the same seed"
            )
    return None


def _may_tell_apart(event: ProgramEvent, events: tuple[ProgramEvent, ...]) -> bool:
    """Tell whether a worker may learn which one it is, not only how many there are."""
    if not event.name.endswith("get_worker_info") or event.function is None:
        return True
    read = {n.attr for n in ast.walk(event.function) if isinstance(n, ast.Attribute)}
    is_handed_on = any(v is event.result for e in events if e.is_own for v in e.args)
    return is_handed_on or bool(read & {"id", "seed", "dataset"})


def _is_stream(dataset: Value | None) -> bool:
    bases = dataset.cls.foreign if isinstance(dataset, Instance) else ()
    return any("IterableDataset" in base for base in bases)


def _is_fixed(generator: Value) -> bool:
    """Tell whether a generator is made with a seed that is the same wherever it is made."""
    given = generator.inputs
    return bool(given) and all(isinstance(v, Known) for v in origins(given[0], 20))


def _seeded_alike(feed: Feed) -> SharedDraws | None:
    """The seed that a worker sets when it starts, whatever its number is."""
    libraries = {drawn(e) for e in _events(feed)} - {""}
    for event in () if feed.example is None else feed.example.start:
        is_same = event.args and isinstance(constant(event.args[0]), int)
        if is_same and seeded(event) in libraries:
            why = "every worker is seeded with the same number here"
            return SharedDraws(feed, event, seeded(event), why)
    return None
