"""The events of one execution by what they are, take and give: looked up, not searched for."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from operator import attrgetter
from typing import TypeVar

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.reach import held_by, is_simple

Key = TypeVar("Key")
Found = Sequence[ProgramEvent]
NONE: Found = ()
_order = attrgetter("order")


class EventIndex:
    """Looks events up by name, receiver, argument and result; every answer is in order.

    Each table is made when it is first asked for. Values are looked up by identity.
    """

    def __init__(self, events: tuple[ProgramEvent, ...]) -> None:
        self.events = events

    def named(self, *names: str) -> Found:
        """Return the events that have one of the names."""
        return _merged([self._by_name.get(name, NONE) for name in dict.fromkeys(names)])

    def stored(self, *names: str) -> Found:
        """Return the stores of attributes that have one of the names; of items, `[]`."""
        return _merged([self._stores_by_name.get(name, NONE) for name in dict.fromkeys(names)])

    def at(self, node: ast.AST) -> Found:
        """Return the events of one place in the source."""
        return self._by_node.get(node, NONE)

    def ending(self, *words: str) -> Found:
        """Return the events whose dotted name ends with one of the words."""
        return _merged([self._by_last_word.get(word, NONE) for word in dict.fromkeys(words)])

    def on(self, *values: Value | None) -> Found:
        """Return the events whose receiver is one of some values."""
        return _merged([self._by_receiver.get(id(value), NONE) for value in values])

    def giving(self, *values: Value | None) -> Found:
        """Return the events whose result is one of some values."""
        return _merged([self._by_result.get(id(value), NONE) for value in values])

    def taking(self, *values: Value) -> Found:
        """Return the events that have one of some values itself among their arguments."""
        return _merged([self._by_argument.get(id(value), NONE) for value in values])

    def touching(self, *values: Value) -> Found:
        """Return the events that have one of some values as their receiver or an argument."""
        return _merged([self.on(*values), self.taking(*values)])

    def between(self, first: int, last: int) -> Found:
        """Return the events after one place in the order and before another."""
        start = bisect_right(self.events, first, key=_order)
        return self.events[start : bisect_left(self.events, last, key=_order)]

    def given(self, value: Value) -> Found:
        """Return the events that have a value among their arguments, or inside of one."""
        holders = (value, *self._holders.get(id(value), ()))
        return _merged([self._by_argument.get(id(h), NONE) for h in holders])

    def using(self, value: Value) -> Found:
        """Return the events that have a value as their receiver or among their arguments."""
        return _merged([self.on(value), self.given(value)])

    @cached_property
    def stores(self) -> Found:
        """The stores of attributes and items."""
        return [event for event in self.events if event.act is EventForm.STORE]

    @cached_property
    def _stores_by_name(self) -> dict[str, list[ProgramEvent]]:
        return _table((event.name, event) for event in self.stores)

    @cached_property
    def _by_node(self) -> dict[ast.AST, list[ProgramEvent]]:
        return _table((event.node, event) for event in self.events)

    @cached_property
    def _by_name(self) -> dict[str, list[ProgramEvent]]:
        return _table((event.name, event) for event in self.events)

    @cached_property
    def _by_last_word(self) -> dict[str, list[ProgramEvent]]:
        found: dict[str, list[list[ProgramEvent]]] = {}
        for name, events in self._by_name.items():
            found.setdefault(name.rsplit(".", 1)[-1], []).append(events)
        return {word: list(_merged(lists)) for word, lists in found.items()}

    @cached_property
    def _by_receiver(self) -> dict[int, list[ProgramEvent]]:
        return _table((id(e.receiver), e) for e in self.events if e.receiver is not None)

    @cached_property
    def _by_result(self) -> dict[int, list[ProgramEvent]]:
        return _table((id(e.result), e) for e in self.events if e.result is not None)

    @cached_property
    def _by_argument(self) -> dict[int, list[ProgramEvent]]:
        return _table((key, e) for e in self.events for key in {id(v) for v in _arguments(e)})

    @cached_property
    def _holders(self) -> dict[int, list[Value]]:
        """The arguments of events that have each value inside, each once."""
        every = {id(v): v for e in self.events for v in _arguments(e) if not is_simple(v)}
        found: dict[int, list[Value]] = {}
        for holder in every.values():
            for held in held_by(holder):
                if held is not holder:
                    found.setdefault(id(held), []).append(holder)
        return found


def _arguments(event: ProgramEvent) -> Iterator[Value]:
    yield from event.args
    yield from event.kwargs.values()


def _table(pairs: Iterable[tuple[Key, ProgramEvent]]) -> dict[Key, list[ProgramEvent]]:
    found: dict[Key, list[ProgramEvent]] = {}
    for key, event in pairs:
        if key in found:
            found[key].append(event)
        else:
            found[key] = [event]
    return found


def _merged(lists: Sequence[Found]) -> Found:
    """Return the events of several lists in order, each once."""
    some = [events for events in lists if events]
    if len(some) < 2:
        return some[0] if some else NONE
    found = {id(event): event for event in merge(*some, key=_order)}
    return list(found.values())
