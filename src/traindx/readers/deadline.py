"""How long a caller will wait: readers of large files ask now and then and stop in good order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A limit on time, in seconds of `time.monotonic`: since when, and until when."""

    started_s: float
    ends_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Begin now, and end after so many seconds."""
        now = time.monotonic()
        return cls(now, now + seconds)

    @property
    def left_s(self) -> float:
        return self.ends_s - time.monotonic()

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self.started_s


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Set the time (of `time.monotonic`) until which reading may go on."""
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def is_over() -> bool:
    """Tell whether the time is up."""
    deadline = _DEADLINE.get()
    return deadline is not None and time.monotonic() > deadline
