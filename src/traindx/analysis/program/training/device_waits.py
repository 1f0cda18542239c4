"""Where a training step makes the host wait for the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import LISTINGS
from traindx.analysis.program.execution.values import Result, Value, origins
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.phases import is_every_turn

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

FORCED = {"torch.cuda.empty_cache": "empties the cache of the device",
          "torch.cuda.synchronize": "waits for the device",
          "gc.collect": "collects garbage"}  # fmt: skip
READS = (".item", ".cpu", ".numpy", ".tolist")


@dataclass(frozen=True, eq=False)
class StepWaits:
    """What one training step waits for, in every turn of its loop."""

    backward: Deed
    forced: tuple[ProgramEvent, ...]  # calls that do nothing but wait
    reads: tuple[ProgramEvent, ...]  # values that are read back, once in a step
    repeated: tuple[ProgramEvent, ...]  # values that are read back for each parameter or sample


def step_waits(story: Story) -> Iterator[StepWaits]:
    """Yield the waits of each training step of a program for CUDA, each loop once."""
    if not any("cuda" in m.text for m in story.program.project.training_modules):
        return
    seen: set[object] = set()
    for backward in story.does(Do.BACKWARD):
        event = backward.event
        if event.loops and event.loops[-1].site.node not in seen and not event.by_framework:
            seen.add(event.loops[-1].site.node)
            yield _waits(story, backward)


def _waits(story: Story, backward: Deed) -> StepWaits:
    turns = backward.event.turns
    inside = [e for e in story.events if e.turns[: len(turns)] == turns]
    calls = [e for e in inside if is_every_turn(_unguarded(e), backward.event)]
    reads = [e for e in calls if e.name in READS and not e.args and not _is_read_before(e)]
    return StepWaits(
        backward,
        tuple(e for e in calls if e.name in FORCED and e.turns == turns),
        tuple(e for e in reads if e.turns == turns),
        tuple(e for e in reads if e.turns != turns and _is_of_the_step(story, e, len(turns))),
    )


def _unguarded(event: ProgramEvent) -> ProgramEvent:
    """Return an event without the conditions that something is there: `if p.grad is not None`."""
    tests = ("operator.is", "operator.is_not")
    kept = (g for g in event.guards if not isinstance(g.test, Result) or g.test.maker not in tests)
    return replace(event, guards=tuple(kept))


def _is_read_before(event: ProgramEvent) -> bool:
    """Tell whether what is read was read back already: `x.cpu().numpy()` waits once."""
    return isinstance(event.receiver, Result) and event.receiver.maker in READS


def _is_of_the_step(story: Story, read: ProgramEvent, depth: int) -> bool:
    """Tell whether a loop inside of a step reads results of the step, or of every parameter.

    An episode that asks the model for each of its actions has to read each of them.
    """
    inner = [turn.loop for turn in read.turns[depth:] if not turn.loop.is_whole]
    if not inner or read.receiver is None:
        return False
    if any(_lists_parameters(run.over) for run in inner if run.over is not None):
        return True
    passes = {id(d.event.result) for d in story.does(Do.FORWARD) if len(d.event.turns) == depth}
    return any(id(v) in passes for v in origins(read.receiver, 400))


def _lists_parameters(over: Value) -> bool:
    found = (v for v in origins(over, 40) if isinstance(v, Result))
    return any(v.maker in LISTINGS for v in found)
