"""Layers that a model builds and that nothing it computes depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Instance, Value
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.idle_layers import (
    IdleMembers,
    idle_members,
    is_trained,
    is_unlearnt,
)
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    forward_passes,
    has_weights,
    is_layer,
    is_parameter,
    registered,
)
from traindx.analysis.program.training.program import Program, Story
from traindx.model.findings import Strength

WAYS = frozenset(
    {".children", ".modules", ".named_children", ".named_modules", ".get_submodule",
     "builtins.getattr", "builtins.setattr", "builtins.vars", "builtins.eval", "builtins.exec"}
)  # fmt: skip
KNOWN = ("torch.nn.", "lightning.", "pytorch_lightning.")  # bases that call no layer by themselves
PARALLEL = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"})


@dataclass(frozen=True, slots=True, eq=False)
class UnusedLayer:
    """A layer that no loss depends on: no code reads it, or nothing comes of the call."""

    kept: Assigned
    call: ProgramEvent | None
    strength: Strength


def unused_layers(program: Program) -> Iterator[UnusedLayer]:
    """Yield the layers with weights that nothing reads, or of whose result nothing comes."""
    layers: dict[object, list[Assigned]] = {}
    for found in _layers(program):
        layers.setdefault(found.event.node, []).append(found)
    for every in layers.values():
        kept, same = every[-1], [a.value for a in every]
        call = _lost_result(program, same) if program.may_read(kept.name) else None
        is_inside = any(_is_called_inside(s, v) for s in program.stories for v in same)
        if call is not None:
            yield UnusedLayer(kept, call, Strength.STRONG)
        elif not program.may_read(kept.name) and not is_inside:
            yield UnusedLayer(kept, None, _harm(program, same))


def _harm(program: Program, layers: list[Value]) -> Strength:
    """How much it matters that a layer is not used: an optimizer holds it, or DDP waits for it."""
    if any(is_trained(s, v) for s in program.stories for v in layers):
        return Strength.STRONG
    names = {e.name.rsplit(".", 1)[-1] for s in program.stories for e in s.events}
    return Strength.MODERATE if names & PARALLEL else Strength.WEAK


def unreached_members(program: Program) -> Iterator[IdleMembers]:
    """Yield the members of lists that no program reaches; one list may have several lengths."""
    found: dict[object, list[IdleMembers]] = {}
    reached = _reached_otherwise(program)
    for story in program.stories:
        for idle in idle_members(story):
            found.setdefault(idle.kept.event.node, []).append(idle)
    for every in found.values():
        idle = every[-1]
        is_whole = _is_whole(idle.kept, reached) and not is_test_file(idle.call.module)
        if is_whole and not _is_reached_elsewhere(program, idle):
            yield idle


def _is_reached_elsewhere(program: Program, idle: IdleMembers) -> bool:
    """Tell whether another program that makes the same list calls all of it."""
    for story in program.stories:
        made = [a for a in assigned(story.events) if a.event.node is idle.kept.event.node]
        idle_there = [i.kept.model for i in idle_members(story)]
        if any(a.model not in idle_there and _is_run(story, a.model) for a in made):
            return True
    return False


def _is_run(story: Story, model: Value) -> bool:
    return any(model in event.within for event in story.events)


def _layers(program: Program) -> Iterator[Assigned]:
    """Yield the layers with weights that models are given, where only their names reach them."""
    reached = _reached_otherwise(program)
    for story in program.stories:
        if is_test_file(story.execution.module):
            continue
        for kept in assigned(story.events):
            is_plain = is_layer(kept.value) and not is_parameter(kept.value)
            if is_plain and has_weights(kept.value) is Answer.YES and _is_whole(kept, reached):
                yield kept


def _is_whole(kept: Assigned, reached: set[object]) -> bool:
    """Tell whether a class has its forward pass in sight, which looks layers up by name."""
    lineage = list(kept.model.cls.lineage())
    is_own = all(base.startswith(KNOWN) for cls in lineage for base in cls.external_bases)
    has_forward = any("forward" in cls.methods for cls in lineage)
    return is_own and has_forward and kept.model.cls.node not in reached


def _reached_otherwise(program: Program) -> set[object]:
    """The classes whose layers some code reaches by other ways than their names."""
    return {
        value.cls.node
        for story in program.stories
        for event in story.events
        if event.name in WAYS
        for value in (event.receiver, *event.args[:1])
        if isinstance(value, Instance)
    }


def _lost_result(program: Program, layers: list[Value]) -> ProgramEvent | None:
    """Return a call of a layer, where nothing comes of any."""
    found: list[ProgramEvent] = []
    for story in program.stories:
        if any("forward_hook" in e.name for e in story.events):
            return None  # what a layer computes may be taken by a hook
        for layer in layers:
            calls = forward_passes(story, layer)
            takers = [e for e in story.flow.takers(layer) if e not in calls]
            if any(e.receiver is not layer and e.act is EventForm.CALL for e in takers):
                return None  # handed to something that may call it
            if not is_unlearnt(story, layer, calls) and not _are_lost(story, calls):
                return None
            found += calls
    return found[0] if found else None


def _is_called_inside(story: Story, holder: Value) -> bool:
    """Tell whether a layer in a container is called by another way than the container."""
    inner = [part for part in registered(holder) if part is not holder]
    return any(forward_passes(story, part) for part in inner)


def _are_lost(story: Story, calls: list[ProgramEvent]) -> bool:
    """Tell whether nothing comes of some calls in a forward pass."""
    return not story.execution.gave_up and all(
        e.within and e.result is not None and story.flow.is_lost(e.result) for e in calls
    )
