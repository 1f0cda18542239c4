"""Means over batches: what is added up, what it is divided by, and what is left out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import Known, Part, Result, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.counters import (
    ADDS,
    Counter,
    counter_of,
    counts_matches,
    factors,
    is_over,
    is_size,
    length_of,
)
from traindx.analysis.program.training.data import Role, deeds_in, feeds, use_of
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.loaders import dataset_of, is_loader
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import source_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

Counters = dict[object, Counter]


def is_mean_of_batch(value: Value) -> bool:
    """Tell whether a number is a mean over a batch, and not weighed by its size."""
    found = list(factors(value))
    if len(found) != 1:
        return False
    operation = operation_of(found[0])
    if operation is None or not operation.operands:
        return False
    if operation.name in LOSSES:
        return constant(operation.settings.get("reduction", Known("mean"))) == "mean"
    return operation.name == "mean" and len(operation.operands) == 1


def counts_examples(value: Value, loop: LoopRun, known: Counters) -> bool:
    """Tell whether a number is how many examples a loop over batches goes through."""
    counter = counter_of(value, known)
    if counter is not None:
        is_here = counter.loop.site.node is loop.site.node
        return is_here and all(is_size(t) and not isinstance(t, Known) for t in counter.terms)
    data = length_of(value)
    if data is None or loop.over is None:
        return False
    is_dataset = isinstance(data, Part) and data.key == "dataset" and is_over(loop, data.of)
    return is_dataset or _is_dataset_of(loop, data)


def _is_dataset_of(loop: LoopRun, data: Value) -> bool:
    source = None if loop.over is None else source_of(loop.over)
    return source is not None and is_loader(source) and dataset_of(source) is data


def means_over_examples(
    story: Story, above: Value, below: Value, known: Counters
) -> Counter | None:
    """Return the sum of means of batches that is divided by a number of examples."""
    counter = counter_of(above, known)
    if counter is None or not all(map(is_mean_of_batch, counter.terms)):
        return None
    runs = [e.loops[-1] for e in counter.events]
    is_judged = all(use_of(story, run) is Role.HELD_OUT for run in runs)
    return counter if is_judged and counts_examples(below, counter.loop, known) else None


def of_last_batch(
    story: Story, event: ProgramEvent, above: Value, below: Value, known: Counters
) -> bool:
    """Tell whether the matches of one batch are divided by the examples of all."""
    made = makers(story)
    if counter_of(above, known) is not None:
        return False
    for found in map(_last_added, factors(above)):
        if not isinstance(found, Result) or not counts_matches(found) or found not in made:
            continue
        inner = [x for x in made[found].loops if all(x is not y for y in event.loops)]
        if len(inner) == 1 and _judges(story, inner[0]) and counts_examples(below, inner[0], known):
            return True
    return False


def _last_added(value: Value) -> Value:
    """Return what is added to a sum that begins anew: `right = 0`, and `right += …` at once."""
    while isinstance(value, Result) and value.maker in ADDS and len(value.args) == 2:
        if not isinstance(value.args[0], Known):
            break
        value = value.args[1]
    return value


def _judges(story: Story, run: LoopRun) -> bool:
    return any(d.do is Do.FORWARD for d in deeds_in(story, run))


def of_other_data(story: Story, above: Value, below: Value, known: Counters) -> str:
    """Return the name of training data whose number held-out examples are divided by."""
    counter, data = counter_of(above, known), length_of(below)
    if counter is None or data is None or not all(map(counts_matches, counter.terms)):
        return ""
    if use_of(story, counter.loop) is not Role.HELD_OUT or counts_examples(
        below, counter.loop, known
    ):
        return ""
    inner = data.of if isinstance(data, Part) and data.key == "dataset" else data
    for feed in feeds(story):
        is_its = feed.loader is inner or (inner is data and feed.dataset is data)
        if is_its and feed.trains and not is_over(counter.loop, feed.loader):
            return feed.name if feed.loader is inner else data.called("the training data")
    return ""
