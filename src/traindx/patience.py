"""How long a caller will wait: readers of large files ask now and then and stop in good order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


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
