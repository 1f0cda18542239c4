"""Means whose sum and count do not belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Value, depends_on, origins
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.averages import (
    means_over_examples,
    of_last_batch,
    of_other_data,
)
from traindx.analysis.program.training.counters import (
    Counter,
    counter_of,
    counters,
    counts_matches,
    half_reset,
    is_index,
    is_one,
    is_over,
    is_size,
    length_of,
    quotients,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.loaders import batch_size, is_loader
from traindx.analysis.program.training.phases import Loop, Phase, source_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story


TALLIES = frozenset({"bincount", "confusion_matrix", "histogramdd", "histogram2d"})


class Miscounted(Enum):
    """What is wrong with a mean."""

    SUM_OF_ALL_EPOCHS = auto()  # over the length of one
    TABLE_OF_ALL_EPOCHS = auto()
    ALL_EPOCHS = auto()  # sum and count of held-out matches, both
    INDEX_AS_COUNT = auto()
    SUM_GOES_ON = auto()
    COUNT_GOES_ON = auto()
    LAST_BATCH = auto()
    OTHER_DATA = auto()
    EXAMPLES_BY_BATCHES = auto()
    EXAMPLES_BY_COUNTED_BATCHES = auto()
    MEANS_BY_EXAMPLES = auto()


@dataclass(frozen=True, eq=False)
class WrongMean:
    """A division that gives no mean, and the names of the sums and counts that are wrong."""

    event: ProgramEvent
    wrong: Miscounted
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Division:
    story: Story
    event: ProgramEvent
    above: Value
    below: Value
    known: dict[object, Counter]

    def is_wrong(self, wrong: Miscounted, *names: str) -> WrongMean:
        return WrongMean(self.event, wrong, names)


def miscounts(program: Program) -> Iterator[WrongMean]:
    """Yield the divisions of a program whose sum and count do not belong together, each once."""
    seen: set[object] = set()
    questions = _QUESTIONS
    if not any(_gives_one(story) for story in program.stories):  # else batches are examples
        questions = (*_QUESTIONS, _per_batch, _means)
    for division in _divisions(program):
        if division.event.node in seen:
            continue
        found = next((f for ask in questions if (f := ask(division)) is not None), None)
        if found is not None:
            seen.add(found.event.node)
            yield found


def _divisions(program: Program) -> Iterator[_Division]:
    for story in program.stories:
        known = counters(story)
        for event, above, below in quotients(story) if known else ():
            yield _Division(story, event, above, below, known)


def _gives_one(story: Story) -> bool:
    made = (e.result for e in story.events if not e.is_own)
    return any(is_loader(v) and batch_size(story, v) == 1 for v in made if v is not None)


def _never_reset(of: _Division) -> WrongMean | None:
    counter, length = counter_of(of.above, of.known), length_of(of.below)
    is_nested = counter is not None and of.event.loops and len(counter.events[0].loops) > 1
    if counter is None or length is None or not is_nested:
        return None
    data = length.of if isinstance(length, Part) and length.key == "dataset" else length
    if not is_over(counter.loop, data) or any(is_size(t) for t in counter.terms):
        return None
    outer = of.event.loops[-1]
    is_inner = outer.site.node is not counter.loop.site.node
    if is_inner and counter.carries_over(outer):
        return of.is_wrong(Miscounted.SUM_OF_ALL_EPOCHS, counter.name)
    return None


def _of_all_epochs(of: _Division) -> WrongMean | None:
    right, all_ = counter_of(of.above, of.known), counter_of(of.below, of.known)
    if right is None or all_ is None or not of.event.loops:
        return None
    outer, inner = of.event.loops[-1], Loop(right.story, right.loop)
    is_outer = outer.site.node is not inner.run.site.node and len(right.events[0].loops) > 1
    if not is_outer or not all(map(counts_matches, right.terms)):
        return None
    trains = Loop(right.story, outer).does(Do.STEP, Do.MANUAL_UPDATE)
    if inner.phase is not Phase.HELD_OUT or not trains:
        return None
    goes_on = right.carries_over(outer) and all_.carries_over(outer)
    return of.is_wrong(Miscounted.ALL_EPOCHS, right.name, all_.name) if goes_on else None


def _table_of_all_epochs(of: _Division) -> WrongMean | None:
    """A confusion matrix that held-out batches are counted into, epoch after epoch."""
    for counter in of.known.values():
        if len(counter.events[0].loops) < 2 or not all(map(_tallies, counter.terms)):
            continue
        outer, inner = counter.events[0].loops[-2], Loop(counter.story, counter.loop)
        sums = [e.result for e in counter.events if e.result is not None]
        is_of_it = any(depends_on(of.above, s) and depends_on(of.below, s) for s in sums)
        is_judged = is_of_it and inner.phase is Phase.HELD_OUT
        trains = is_judged and Loop(counter.story, outer).does(Do.STEP, Do.MANUAL_UPDATE)
        if trains and counter.carries_over(outer):
            return of.is_wrong(Miscounted.TABLE_OF_ALL_EPOCHS, counter.name)
    return None


def _tallies(value: Value) -> bool:
    """Tell whether a table counts pairs of classes: `bincount`, `confusion_matrix`."""
    for found in origins(value, 12):
        name = found.maker.rsplit(".", 1)[-1] if isinstance(found, Result) else ""
        if name in TALLIES:
            return True
    return False


def _by_index(of: _Division) -> WrongMean | None:
    for counter in of.known.values():
        sums = [e.result for e in counter.events if e.result is not None]
        if not any(is_index(t) for t in counter.terms):
            continue
        is_weighted = any(depends_on(of.above, t) for t in counter.terms)
        if not is_weighted and any(depends_on(of.below, s) for s in sums):
            return of.is_wrong(Miscounted.INDEX_AS_COUNT, counter.name)
    return None


def _half_reset(of: _Division) -> WrongMean | None:
    which = half_reset(of.story, of.event, of.above, of.below)
    if not which:
        return None
    is_sum = which == "above"
    return of.is_wrong(Miscounted.SUM_GOES_ON if is_sum else Miscounted.COUNT_GOES_ON)


def _left_out(of: _Division) -> WrongMean | None:
    if of_last_batch(of.story, of.event, of.above, of.below, of.known):
        return of.is_wrong(Miscounted.LAST_BATCH)
    other = of_other_data(of.story, of.above, of.below, of.known)
    return of.is_wrong(Miscounted.OTHER_DATA, other) if other else None


def _means(of: _Division) -> WrongMean | None:
    counter = means_over_examples(of.story, of.above, of.below, of.known)
    return None if counter is None else of.is_wrong(Miscounted.MEANS_BY_EXAMPLES, counter.name)


def _per_batch(of: _Division) -> WrongMean | None:
    counter = counter_of(of.above, of.known)
    if counter is None or not all(counts_matches(t) for t in counter.terms):
        return None
    over = None if counter.loop.over is None else source_of(counter.loop.over)
    if over is None or of.story.kind_of(over).kind is not Kind.LOADER:
        return None
    length = length_of(of.below)
    if length is not None and is_over(counter.loop, length):
        return of.is_wrong(Miscounted.EXAMPLES_BY_BATCHES)
    other = counter_of(of.below, of.known)
    is_here = other is not None and other.loop.site.node is counter.loop.site.node
    if other is not None and is_here and all(map(is_one, other.terms)):
        return of.is_wrong(Miscounted.EXAMPLES_BY_COUNTED_BATCHES, other.name)
    return None


_QUESTIONS: tuple[Callable[[_Division], WrongMean | None], ...] = (
    _never_reset, _of_all_epochs, _table_of_all_epochs, _by_index, _half_reset, _left_out,
)  # fmt: skip
