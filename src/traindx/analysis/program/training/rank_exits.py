"""Loops that each rank leaves by what it alone has seen, while the others wait for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, Guard, LoopExit
from traindx.analysis.program.execution.examples import is_loader
from traindx.analysis.program.execution.values import Result, Value, origins
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.data import depends_on_rank, feeds
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.rank_shares import MEETINGS, SAMPLER, WRAPPERS

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

FARTHEST = 3000  # values that a decision is traced back through
FAILURES = frozenset({"isnan", "isinf", "isfinite"})
GATHERS = MEETINGS | {"gather_for_metrics", "all_gather_into_tensor", "reduce_dict"}


@dataclass(frozen=True, eq=False)
class LoneExit:
    """A way out of a training loop that ranks take one by one, and a step that needs them all."""

    exit: LoopExit
    guard: Guard
    backward: Deed


def lone_exits(story: Story) -> Iterator[LoneExit]:
    """Yield where a rank leaves the loop over epochs or batches by a number of its own share."""
    last = (e.name.rsplit(".", 1)[-1] for e in story.events)
    if not any(name in (*WRAPPERS, "DDP") for name in last) or story.execution.gave_up:
        return
    own = {id(f.loader) for f in feeds(story) if _is_own(f.loader, f.sampler, f.dataset)}
    for way_out in story.execution.exits if own else ():
        left = way_out.turns[-1].loop if way_out.turns else None
        inside = [d for d in story.does(Do.BACKWARD) if left in d.event.loops]
        for guard in way_out.guards if inside else ():
            if guard.test is not None and _is_decided_alone(story, guard.test, own):
                yield LoneExit(way_out, guard, inside[0])
                break


def _is_own(loader: Value, sampler: Value | None, dataset: Value | None) -> bool:
    """Tell whether a loader gives each rank other examples."""
    is_sampled = isinstance(sampler, Result) and sampler.maker == SAMPLER
    return is_sampled or depends_on_rank(dataset) or depends_on_rank(loader)


def _is_decided_alone(story: Story, test: Value, own: set[int]) -> bool:
    """Tell whether a condition rests on a rank's own examples, and nothing brings them together."""
    if any(_is_check(value) for value in origins(test, 30)):
        return False  # a run that has failed
    behind = list(_behind(story, test))
    if not any(_is_drawn_of(value, own) for value in behind):
        return False
    known = {id(value) for value in behind}
    for event in story.events:
        if event.name.rsplit(".", 1)[-1] not in GATHERS:
            continue
        given = (event.receiver, event.result, *event.args, *event.kwargs.values())
        if any(id(value) in known for value in given if value is not None):
            return False
    return True


def _is_check(value: Value) -> bool:
    return isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in FAILURES


def _is_drawn_of(value: Value, own: set[int]) -> bool:
    is_drawn = isinstance(value, Result) and value.maker == "builtins.next" and bool(value.args)
    source = source_of(value.args[0]) if is_drawn and isinstance(value, Result) else None
    return source is not None and is_loader(source) and id(source) in own


def _behind(story: Story, test: Value) -> Iterator[Value]:
    """Yield what a value was computed from, and what decided that it became what it is."""
    given = story.recall(_deciding)
    pending, seen = deque([test]), {id(test)}
    while pending and len(seen) < FARTHEST:
        value = pending.popleft()
        yield value
        for found in (*value.inputs, *given.get(id(value), ())):
            if id(found) not in seen:
                seen.add(id(found))
                pending.append(found)


def _deciding(story: Story) -> dict[int, list[Value]]:
    """The conditions under which names and attributes were given each value."""
    found: dict[int, list[Value]] = {}
    for given in story.execution.assignments:
        found.setdefault(id(given.value), []).extend(_tests(given.guards))
    for event in story.events:
        if event.act is EventForm.STORE and event.args:
            found.setdefault(id(event.args[0]), []).extend(_tests(event.guards))
    return found


def _tests(guards: tuple[Guard, ...]) -> list[Value]:
    return [guard.test for guard in guards if guard.test is not None]
