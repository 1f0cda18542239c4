"""Two networks that are trained in turns: what the losses of each optimizer reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.gradients import Cut, cuts_before, runs_behind, runs_reached
from traindx.analysis.program.training.ownership import owns

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(eq=False)
class NetworkTurn:
    """What an optimizer steps after: the layers that its losses reach, and what is cut off."""

    optimizer: Value
    backward: list[Deed] = field(default_factory=list)
    runs: list[Result] = field(default_factory=list)
    reached: list[Value] = field(default_factory=list)
    cuts: list[Value] = field(default_factory=list)


def lost_turns(story: Story) -> Iterator[NetworkTurn]:
    """Yield the turns whose losses reach only what others train, since its own is detached."""
    turns = _turns_of(story)
    for turn in turns:
        others = [t for t in turns if t.optimizer is not turn.optimizer]
        if turn.backward and others and _is_lost(turn, others):
            yield turn


def _turns_of(story: Story) -> list[NetworkTurn]:
    found: dict[int, NetworkTurn] = {}
    waiting: list[Deed] = []
    for deed in story.does(Do.BACKWARD, Do.STEP):
        if deed.do is Do.BACKWARD:
            waiting.append(deed)
        elif deed.subject is not None:
            turn = found.setdefault(id(deed.subject), NetworkTurn(deed.subject))
            for backward in waiting:
                _add(turn, backward)
            waiting = []
    return list(found.values())


def _add(turn: NetworkTurn, backward: Deed) -> None:
    if backward.subject is None:
        return
    turn.backward.append(backward)
    reached = runs_reached(backward.subject, certain=False)
    turn.runs += reached
    turn.reached += [r.receiver for r in reached if r.receiver is not None]
    cuts = cuts_before(backward.subject, certain=False)
    turn.cuts += [cut for how, cut in cuts if how is Cut.DETACHED]


def _is_lost(turn: NetworkTurn, others: list[NetworkTurn]) -> bool:
    """Tell whether the losses of an optimizer reach only what others train, its own being cut."""
    theirs = [v for other in others for v in other.reached]
    if not turn.reached or not all(any(v is t for t in theirs) for v in turn.reached):
        return False
    behind = [r.receiver for cut in turn.cuts for r in runs_behind(cut, certain=False)]
    own = [v for v in behind if v is not None and not any(v is t for t in theirs)]
    owned = {owns(turn.optimizer, v) for v in own}
    if not own or Answer.NO in owned:
        return False
    if any(owns(turn.optimizer, v) is Answer.YES for v in turn.reached):
        return False
    return owned == {Answer.YES} or all(_judges(run, own) for run in turn.runs)


def _judges(run: Result, networks: list[Value]) -> bool:
    """Tell whether a network ran on what others made: a discriminator also sees real data."""
    below = [r.receiver for r in runs_behind(run, certain=False)]
    return any(b is n for b in below for n in networks)
