"""How long an analysis may take: asked now and then, so that a limit acts inside of long ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ENDS: ContextVar[float | None] = ContextVar("time limit of an analysis", default=None)
OFTEN = 256  # questions between two looks at the clock


class OutOfTime(Exception):
    """The time for an analysis is up; whoever began it says what was left out."""


class _Asked:
    """Counts the questions, for a look at the clock costs more than most of them."""

    count = 0


@contextmanager
def limited(ends_s: float | None) -> Iterator[None]:
    """Let an analysis go on until a time of `time.monotonic`."""
    token = _ENDS.set(ends_s)
    try:
        yield
    finally:
        _ENDS.reset(token)


def is_out_of_time() -> bool:
    """Tell whether the time is up."""
    ends = _ENDS.get()
    return ends is not None and time.monotonic() > ends


def ask_time() -> None:
    """Look at the clock every so often, and end the analysis when its time is up."""
    _Asked.count += 1
    if _Asked.count % OFTEN == 0 and is_out_of_time():
        raise OutOfTime
