"""Layers that training never reaches: no forward pass calls them, or no loss depends on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.iteration import layers_of
from traindx.analysis.program.execution.values import (
    MAX_OPTIONS,
    Answer,
    Instance,
    Result,
    Value,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradients import is_cut
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    forward_passes,
    has_weights,
)
from traindx.analysis.program.training.ownership import Holding, holding_of, optimizers_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LISTS = frozenset({"torch.nn.ModuleList"})
# what takes a container and gives out its members one by one, or only counts or moves them
SEEN_THROUGH = frozenset(
    {"builtins.zip", "builtins.enumerate", "builtins.len", "builtins.reversed", "builtins.list",
     "builtins.iter", "builtins.range", "builtins.print", "builtins.isinstance"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class IdleMembers:
    """A list of layers, the places in it that are never called, and a call of another one.

    Or called in vain: each turn of a loop puts its result in the place of the last one's.
    """

    kept: Assigned
    places: tuple[int, ...]
    call: ProgramEvent
    is_called: bool = False


def idle_members(story: Story) -> Iterator[IdleMembers]:
    """Yield the lists of layers of which a forward pass calls some and never reaches others."""
    if story.execution.gave_up:
        return
    for kept in assigned(story.index.stores):
        members = _members(kept)
        if not members or kept.model.fields.get(kept.name) is not kept.value:
            continue
        calls = [forward_passes(story, member) for member in members]
        places = tuple(i for i, found in enumerate(calls) if not found)
        in_vain = tuple(i for i, found in enumerate(calls) if found and _are_lost(story, found))
        if not places and 0 < len(in_vain) < len(calls) and story.does(Do.BACKWARD):
            yield IdleMembers(kept, in_vain, calls[in_vain[0]][0], is_called=True)
            continue
        first = next((found[0] for found in calls if found), None)
        is_open = any(_is_taken(story, v) for v in (kept.value, *(members[i] for i in places)))
        if places and first is not None and kept.model in first.within and not is_open:
            yield IdleMembers(kept, places, first)


def _are_lost(story: Story, calls: list[ProgramEvent]) -> bool:
    """Tell whether nothing comes of what a layer gives in a forward pass, with gradients."""
    if any("forward_hook" in event.name for event in story.events):
        return False  # a hook may take it
    return all(
        e.within and e.result is not None and story.flow.is_lost(e.result) for e in calls
    ) and any(e.gradients is Answer.YES for e in calls)


def is_unlearnt(story: Story, layer: Value, calls: list[ProgramEvent]) -> bool:
    """Tell whether an optimizer holds a layer that is run with gradients, and no loss depends on.

    What it gives may be returned and looked at; weights that are written by hand are left alone.
    """
    is_run = any(e.gradients is Answer.YES and e.within for e in calls)
    if not is_run or not is_trained(story, layer) or story.execution.returned is not None:
        return False
    return all(e.result is not None and story.flow.is_unlearnt(e.result, is_cut) for e in calls)


def is_trained(story: Story, layer: Value) -> bool:
    """Tell whether a program that learns by its loss alone has a layer in its optimizer."""
    if story.execution.gave_up or not story.does(Do.BACKWARD) or story.does(Do.MANUAL_UPDATE):
        return False
    holding = story.recall(_holding)
    return holding.has(layer) and is_ever_frozen(story, layer) is Answer.NO


def _holding(story: Story) -> Holding:
    return holding_of(story, *optimizers_of(story))


def _members(kept: Assigned) -> list[Value]:
    """Return the layers of a list, where they are few enough to be gone through one by one."""
    value = kept.value
    if not isinstance(value, Result) or value.maker not in LISTS:
        return []
    found = layers_of(value) or []
    is_plain = all(has_weights(layer) is Answer.YES for layer in found)
    return found if is_plain and 1 < len(found) <= MAX_OPTIONS else []


def _is_taken(story: Story, value: Value) -> bool:
    """Tell whether something takes a list or layer, and may call what is in it out of sight."""
    for event in story.flow.takers(value):
        is_known = event.act is EventForm.STORE or event.name in SEEN_THROUGH
        is_made = event.result is not None and event.result.site is event.site
        is_list = is_made and event.name in LISTS
        is_own = event.is_own and not isinstance(event.receiver, Instance)
        if not (is_known or is_list or is_own or event.receiver is value):
            return True
    return False
