"""Where a model is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import unmoved
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.phases import Loop, training_loops

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


def compiled_again(story: Story) -> Iterator[tuple[ProgramEvent, Loop]]:
    """Yield where each turn of a training loop compiles the same model, and that loop."""
    for loop in training_loops(story):
        compiled = (e for e in loop.events if _compiles(e) and _is_the_same_again(loop, e))
        again = next(compiled, None)
        makes = any(e.result is v for v in story.made(Kind.OPTIMIZER) for e in loop.events)
        if again is not None and not makes:
            yield again, loop


def _compiles(event: ProgramEvent) -> bool:
    return event.name == "torch.compile" and bool(event.args)


def _is_the_same_again(loop: Loop, event: ProgramEvent) -> bool:
    """Tell whether each turn compiles, without a condition, what the turn before did."""
    again = [e for e in loop.events if e.node is event.node and e is not event]
    outer = next(t for t in event.turns if t.loop.site.node is loop.run.site.node)
    depth = event.turns.index(outer)
    is_guarded = len(event.guards) > len(loop.entered_under)
    later = [e for e in again if e.turns[:depth] == event.turns[:depth] and e.turns != event.turns]
    return not is_guarded and any(unmoved(e.args[0]) is unmoved(event.args[0]) for e in later)
