"""Whether the graphs of earlier steps are still there: something of them is held."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from .graph import Node

MAX_MARKS = 64  # steps
APART = 4  # steps: what a loop holds from one to the next is let go by then
_KEY = "traindx"
_LEAF = "accumulate_grad"  # lives as long as its parameter


class _Mark:
    """Lies in the first operation of a graph, and dies with it."""

    __slots__ = ("__weakref__",)


class GraphMarks:
    """Marks the graphs of the steps that are looked at."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, weakref.ref[_Mark]]] = []

    def mark(self, step: int, nodes: Sequence[Node]) -> None:
        """Mark the operation of a step's graph that is farthest from its loss."""
        first = next((n for n in reversed(nodes) if n.name != _LEAF), None)
        if first is None or len(self._marks) >= MAX_MARKS:
            return
        mark = _Mark()
        first.fn.metadata[_KEY] = mark
        self._marks.append((step, weakref.ref(mark)))

    def kept(self, step: int) -> tuple[int, int]:
        """Return how many graphs of earlier steps are alive, and of how many."""
        past = [mark for at, mark in self._marks if at <= step - APART]
        return sum(mark() is not None for mark in past), len(past)
