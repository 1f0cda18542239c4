"""`set_grad_enabled` as a statement: gradients that are switched off and not surely on again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Result, constant, origins
from traindx.analysis.program.training.acts import Deed, Do

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SWITCH = "torch.set_grad_enabled"
MEASURED = frozenset({".item", "()", ".mean", ".sum", "builtins.float"})


@dataclass(frozen=True, eq=False)
class LeftOff:
    """Where gradients are switched off, where on again, and the backward pass that comes next."""

    off: ProgramEvent
    on: ProgramEvent
    backward: Deed


def left_off(story: Story) -> Iterator[LeftOff]:
    """Yield where gradients are on again only if what was measured turns out one way."""
    switches = [e for e in story.events if e.name == SWITCH and e.is_dropped]
    for off in switches:
        if constant(off.argument("mode", 0)) is not False:
            continue
        backward = _next_pass(story, off)
        if backward is None:
            continue
        between = [e for e in switches if off.order < e.order < backward.event.order]
        on = next(iter(between), None)
        if on is not None and _is_for_some(between, off):
            yield LeftOff(off, on, backward)


def _next_pass(story: Story, off: ProgramEvent) -> Deed | None:
    """Return the next backward pass, where no context switches gradients on for it."""
    later = (d for d in story.does(Do.BACKWARD) if d.event.order > off.order)
    found = next(later, None)
    if found is None or found.event.by_framework or found.event.gradients is Answer.NO:
        return None
    return None if found.event.contexts or found.event.guards else found


def _is_for_some(switches: Sequence[ProgramEvent], off: ProgramEvent) -> bool:
    """Tell whether all that switches gradients on stands on one way of a measured condition."""
    if any(constant(e.argument("mode", 0)) is not True for e in switches):
        return False
    known = {(g.site.node, g.holds) for g in off.guards}
    first, *others = [{(g.site.node, g.holds): g for g in e.guards} for e in switches]
    shared = [g for way, g in first.items() if way not in known and all(way in o for o in others)]
    return any(_is_measured(g) for g in shared)


def _is_measured(guard: Guard) -> bool:
    tested = origins(guard.test, 200) if guard.test is not None else iter(())
    return any(isinstance(v, Result) and v.maker in MEASURED for v in tested)
