"""A clock that can be held: a process that waits for its turn does not grow older.

A recorder with a budget would take the pause for time that was trained in, and spend more. This has
to be imported before torch, for a recorder takes hold of the clock when torch is imported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_count = time.perf_counter
_held_s: list[float] = [0.0]


def _running() -> float:
    return _count() - _held_s[0]


def make_holdable() -> None:
    """Let everybody who asks for `time.perf_counter` from now on use this clock."""
    time.perf_counter = _running


@contextmanager
def held() -> Iterator[None]:
    """Take what happens inside out of the time; for other threads the clock steps back after it."""
    began_s = _count()
    yield
    _held_s[0] += _count() - began_s
