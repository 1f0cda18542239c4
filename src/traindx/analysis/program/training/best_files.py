"""The file of the best epoch: by which test it is written, and what writes over it later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Assignment, Guard, ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    Known,
    Result,
    Site,
    Value,
    depends_on,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import words_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COMPARED = frozenset({"operator.lt", "operator.le", "operator.gt", "operator.ge"})

BEST_OF = frozenset({"builtins.max", "builtins.min", "torch.max", "torch.min", "numpy.maximum",
                     "numpy.minimum"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class OverwrittenBest:
    """A file with the best weights, and what writes other weights over them."""

    save: Deed
    test: Guard
    again: Deed | None  # None where the test itself lets every epoch write
    reason: str

    @property
    def place(self) -> Deed | Site:
        """Where the best is lost: the call, where one function writes both."""
        if self.again is None:
            return self.save
        again = self.again.event
        is_shared = again.node is self.save.event.node and bool(again.callers)
        return again.callers[-1] if is_shared else self.again


def overwritten_best(story: Story) -> Iterator[OverwrittenBest]:
    """Yield the files that are written where a score is the best, and do not keep the best."""
    saves = [d for d in story.does(Do.SAVE) if _path(d) is not None]
    for save in saves:
        test = _best_test(story, save.event)
        if test is None:
            continue
        again = next((d for d in saves if _writes_over(story, save, test, d)), None)
        if again is not None:
            yield OverwrittenBest(save, test, again, "same file")
        elif (reason := _misjudged(story, save, test)) != "":
            yield OverwrittenBest(save, test, None, reason)


def _path(save: Deed) -> Value | None:
    return save.event.argument("f", 1)


def _best_test(story: Story, event: ProgramEvent) -> Guard | None:
    """Return the comparison with the best score so far that a save stands under."""
    for guard in reversed(event.guards):
        if event.turns and (_best_side(guard) is not None or _keeps_score(story, guard)):
            return guard
    return None


def _keeps_score(story: Story, guard: Guard) -> bool:
    """Tell whether a comparison is with the best so far, which a better score replaces."""
    test = guard.true_test
    if not isinstance(test, Result) or test.maker not in COMPARED or len(test.args) != 2:
        return False
    beside = story.recall(_assigned_under).get(guard, ())
    kept = [a for a in beside if any(a.value is v for v in test.args)]
    return any(a.name in v.names or any(a.name in o.names for o in options_of(v))
               for a in kept for v in test.args if v is not a.value)  # fmt: skip


def _assigned_under(story: Story) -> dict[Guard, list[Assignment]]:
    """The assignments that each condition stands around."""
    found: dict[Guard, list[Assignment]] = {}
    for assignment in story.execution.assignments:
        for guard in dict.fromkeys(assignment.guards):
            found.setdefault(guard, []).append(assignment)
    return found


def _best_side(guard: Guard) -> Value | None:
    """Return the side of a comparison that is the best so far, by its name.

    The score goes by that name too once it is the best; the best so far is what was there before.
    """
    test = guard.true_test
    if not isinstance(test, Result) or test.maker not in COMPARED or len(test.args) != 2:
        return None
    sides = [v for v in test.args if _is_called_best(v)]
    kept = [v for v in sides if isinstance(v, (Known, Choice))]
    return (kept or sides or [None])[0] if len(kept) < 2 else None


def _is_called_best(value: Value) -> bool:
    names = {n for o in (value, *options_of(value)) for n in o.names}
    return any("best" in words_of(name) for name in names)


def _writes_over(story: Story, save: Deed, test: Guard, other: Deed) -> bool:
    """Tell whether a later save goes to the same file whether or not the score is the best."""
    if other.event.order <= save.event.order or _is_under(other.event, test):
        return False
    ours, theirs = _path(save), _path(other)
    is_here = ours is not None and theirs is not None and is_same(ours, theirs)
    if not is_here or not _is_fixed(save, ours) or _has_own_guard(save.event, other.event):
        return False
    between = (d for d in story.does(Do.LOAD_STATE)
               if save.event.order < d.event.order < other.event.order)  # fmt: skip
    return not any(True for _ in between) and _is_same_content(save, other)


def _is_under(event: ProgramEvent, test: Guard) -> bool:
    """Tell whether an event stands under a comparison of the same place, or one with the best."""
    return any(g.site.node is test.site.node or _best_side(g) is not None for g in event.guards)


def _has_own_guard(save: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether an event may not happen, by a condition that the save does not stand under."""
    nodes = {g.site.node for g in save.guards}
    return any(g.site.node not in nodes for g in other.guards)


def _is_fixed(save: Deed, path: Value | None) -> bool:
    """Tell whether a path is the same in every turn: no epoch and no score is in it."""
    if path is None:
        return False
    loops = [loop.over for loop in save.event.loops if loop.over is not None]
    drawn = [v for v in origins(path, 60) if isinstance(v, Result) and v.maker == "builtins.next"]
    return not drawn and not any(depends_on(path, over) for over in loops)


def _is_same_content(save: Deed, other: Deed) -> bool:
    """Tell whether two saves hold the state of one model."""
    owners = [{id(v.receiver) for v in origins(d.subject, 60)
               if isinstance(v, Result) and v.maker == ".state_dict"}
              for d in (save, other) if d.subject is not None]  # fmt: skip
    is_whole = save.subject is other.subject and save.subject is not None
    return is_whole or (len(owners) == 2 and bool(owners[0] & owners[1]))


def _misjudged(story: Story, save: Deed, test: Guard) -> str:
    """Tell why a test does not ask for the best: its score never changes, or in every turn.

    A later turn of the loop shows it: one that is kept under a condition may be either.
    """
    best, turns = _best_side(test), save.event.turns
    is_later = bool(turns) and turns[0].number > 0 and not turns[0].loop.is_whole
    if not is_later or not _is_fixed(save, _path(save)) or _is_left(story, save):
        return ""
    if isinstance(best, Known) and isinstance(best.value, (int, float)):
        return "never updated"
    # `best = max(best, score)` keeps the best without a condition
    is_computed = isinstance(best, Result) and best.maker not in BEST_OF
    is_last = is_computed and any(a.value is best and not a.guards for a in _named_best(story))
    return "always updated" if is_last else ""


def _named_best(story: Story) -> list[Assignment]:
    return [a for a in story.execution.assignments if "best" in words_of(a.name) and a.turns]


def _is_left(story: Story, save: Deed) -> bool:
    """Tell whether training does not go on once it was saved: a goal was reached."""
    loops = {id(loop) for loop in save.event.loops}
    later = (d for d in story.does(Do.STEP) if any(id(x) in loops for x in d.event.loops))
    return not any(True for _ in later)
