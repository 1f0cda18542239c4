"""Where values go: what is computed from a value, and whether anything comes of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cached_property

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    ClassValue,
    Generator,
    Items,
    Known,
    Part,
    PartialCall,
    Result,
    Table,
    Unknown,
    Value,
)

DEPTH = 4  # lists in lists
MOST = 4000  # values that are followed from one
PURE = ("torch.nn.functional.", "torch.special.", "torch.linalg.", "operator.", "math.", "numpy.")
ACTS = frozenset({"torch.save", "builtins.setattr", "builtins.exec", "builtins.eval"})
ITERATES = frozenset({"builtins.zip", "builtins.enumerate", "builtins.iter", "builtins.reversed"})
IDLE = frozenset({"builtins.print"})  # takes a value and does nothing to train


class Flow:
    """The values of one execution, each with what is computed from it."""

    def __init__(self, events: tuple[ProgramEvent, ...]) -> None:
        self.events = events

    @cached_property
    def _users(self) -> dict[int, list[Value]]:
        found: dict[int, list[Value]] = {}
        seen: set[int] = set()
        pending = [v for e in self.events for v in _values(e)]
        while pending:
            value = pending.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            for below in value.inputs:
                found.setdefault(id(below), []).append(value)
                pending.append(below)
        return found

    @cached_property
    def _takers(self) -> dict[int, list[ProgramEvent]]:
        found: dict[int, list[ProgramEvent]] = {}
        for event in self.events:
            given = (event.receiver, *event.args, *event.kwargs.values())
            taken = {id(v) for g in given if g is not None for v in inside(g)}
            for key in taken:
                found.setdefault(key, []).append(event)
        return found

    @property
    def taken(self) -> Set[int]:
        """The identities of the values that calls and stores take."""
        return self._takers.keys()

    @cached_property
    def _sinks(self) -> set[int]:
        """The values that something other than a computation takes."""
        found: set[int] = set()
        for event in self.events:
            found |= {id(v) for g in _consumed(event) for v in inside(g)}
            found |= {id(guard.test) for guard in event.guards if guard.test is not None}
            found |= {id(loop.over) for loop in event.loops if loop.over is not None}
        return found

    def users(self, value: Value) -> list[Value]:
        """Return the values that are computed directly from a value."""
        return self._users.get(id(value), [])

    def takers(self, value: Value) -> list[ProgramEvent]:
        """Return the calls and stores that take a value, alone or in a list."""
        return self._takers.get(id(value), [])

    def is_lost(self, value: Value) -> bool:
        """Tell whether nothing comes of a value: nothing returns, keeps or trains on it.

        What is taken out of a list comes of the list, and what a list is gone over for may.
        """
        after = (found for v in inside(value) for found in self.onward(v))
        return all(id(found) not in self._sinks and not _is_gone_over(found) for found in after)

    @cached_property
    def _kept(self) -> set[int]:
        """The values that something out of sight takes, that are stored or trained on."""
        taken = (g for event in self.events for g in _consumed(event, returned=False))
        return {id(v) for given in taken for v in inside(given)}

    def is_unlearnt(self, value: Value, is_cut: Callable[[Value], bool]) -> bool:
        """Tell whether no gradient can come back to a value: it is at most looked at."""
        after = (found for v in inside(value) for found in self.onward(v, is_cut))
        return all(id(v) not in self._kept and not _is_gone_over(v) for v in after if not is_cut(v))

    def onward(self, value: Value, ends: Callable[[Value], bool] | None = None) -> Iterator[Value]:
        """Yield a value and everything that is computed from it, nearest first."""
        pending, seen = deque([value]), {id(value)}
        for _ in range(MOST):
            if not pending:
                return
            found = pending.popleft()
            yield found
            if ends is not None and ends(found):
                continue
            for user in self.users(found):
                if id(user) not in seen:
                    seen.add(id(user))
                    pending.append(user)


def _is_gone_over(value: Value) -> bool:
    return isinstance(value, Result) and value.maker in ITERATES


def inside(value: Value, depth: int = DEPTH) -> Iterator[Value]:
    """Yield a value and what it holds in lists, tables, choices."""
    yield value
    if depth and isinstance(value, (Choice, Items, Table, PartialCall, Generator)):
        for below in value.inputs:
            yield from inside(below, depth - 1)


def _values(event: ProgramEvent) -> Iterator[Value]:
    loops = (loop.over for loop in event.loops)
    tests = (guard.test for guard in event.guards)
    every: Iterable[Value | None] = (
        event.receiver, event.result, *event.args, *event.kwargs.values(), *loops, *tests,
    )  # fmt: skip
    return (v for v in every if v is not None)


def _consumed(event: ProgramEvent, *, returned: bool = True) -> Iterator[Value]:
    """Yield what an event takes for something else than to compute its result.

    With `returned`, also what a function of the project gives back outside of a forward pass.
    """
    given = (*event.args, *event.kwargs.values())
    if event.act is EventForm.STORE:
        yield event.args[0]
    elif event.is_own:
        is_unfollowed = isinstance(event.result, Generator) or (
            isinstance(event.result, Result) and event.result.maker.startswith("recursion.")
        )
        if is_unfollowed or isinstance(event.callee, ClassValue):  # an object keeps what it gets
            yield from given
        is_given_away = not event.within or event.is_called_back
        if returned and is_given_away and event.result is not None:
            yield event.result
    elif not _is_pure(event):
        yield from given
        if event.receiver is not None:
            yield event.receiver


def _is_pure(event: ProgramEvent) -> bool:
    """Tell whether a call does no more than to compute its result."""
    name, receiver = event.name, event.receiver
    last = name.rsplit(".", 1)[-1]
    if name in IDLE or isinstance(receiver, (Items, Table, Known)):
        return True
    if last.endswith("_") or name in ACTS or last == "backward":
        return False
    if name == "()":
        return isinstance(receiver, Result) and receiver.maker.startswith("torch.nn.")
    if receiver is not None:
        return _is_computed(receiver)
    return name.startswith((*PURE, "builtins.")) or (
        name.startswith("torch.") and name.count(".") == 1
    )


def _is_computed(value: Value) -> bool:
    """Tell whether a value comes out of a computation on tensors."""
    if isinstance(value, Part):
        return _is_computed(value.of)
    if isinstance(value, Choice):
        return all(_is_computed(o) for o in value.options)
    if isinstance(value, Unknown):
        return False
    root = value.maker.split(".", 1)[0] if isinstance(value, Result) else "?"
    return root in ("torch", "operator", "()", "builtins") or (
        isinstance(value, Result) and value.receiver is not None and _is_computed(value.receiver)
    )
