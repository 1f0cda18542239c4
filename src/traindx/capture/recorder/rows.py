"""The steps, one row each: how long each phase took, and numbers that may arrive a step later."""

from __future__ import annotations

import time
from collections import deque
from math import isfinite, nan
from time import perf_counter
from typing import Any

from .later import Later
from .record_writer import COLUMNS, Writer

MEDIAN_OF = 101  # steps
# Rows are worked on several at a time: code that runs once per step runs with cold caches.
TOGETHER = 32
LATEST_S = 0.25
UNSEEN = (None,) * (len(COLUMNS) - 4)  # what is not known of a step that passed


class PhaseClock:
    """Times the phases of a step; what the recorder itself takes is left out."""

    def __init__(self) -> None:
        self.mark = perf_counter()  # the end of the last phase
        self.data = self.forward = self.backward = self.optimizer = 0.0
        self.durations: deque[float] = deque(maxlen=MEDIAN_OF)
        self._ended = self.mark
        self._spent = 0.0

    def lap(self) -> float:
        """Return the time since the last mark, and mark."""
        now = perf_counter()
        passed, self.mark = now - self.mark, now
        return passed

    def end(self, spent_s: float) -> tuple[float, float, float, float, float]:
        """Return the phases of the step that ends and its whole length, and begin the next one."""
        now = perf_counter()
        total = max(0.0, (now - self._ended) - (spent_s - self._spent))
        phases = (self.data, self.forward, self.backward, self.optimizer, total)
        self.restart(spent_s)
        return phases

    def restart(self, spent_s: float) -> None:
        """Begin a step now."""
        self._ended = self.mark = perf_counter()
        self._spent = spent_s
        self.data = self.forward = self.backward = self.optimizer = 0.0

    def forgive(self, cost_s: float) -> None:
        """Leave a long interruption out of the step."""
        self._ended += cost_s

    def median_s(self) -> float:
        ordered = sorted(self.durations)
        return ordered[len(ordered) // 2] if ordered else nan


class Losses:
    """The losses of one step: several where gradients are accumulated or a closure is called."""

    def __init__(self) -> None:
        self.values: list[Later] = []
        self.is_closure = False

    def total(self) -> float | None:
        """Parts of an accumulated step add up; a closure computes one loss again and again."""
        known = [later.value for later in self.values if later.value is not None]
        if not known:
            return None
        return known[0] if self.is_closure else sum(known)

    def is_known(self) -> bool:
        """Tell whether the losses came at once, and so were seen to be numbers, or not."""
        return all([later.is_known for later in self.values])  # noqa: C419 - quicker so

    def are_here(self) -> bool:
        return all([later.is_here() for later in self.values])  # noqa: C419 - ask every one


class Rows:
    """Steps that wait for their numbers, in order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, Losses | None]] = deque()
        self._drained = perf_counter()

    def add(
        self,
        owner: tuple[int, int],
        losses: Losses,
        settings: tuple[Any, Any, Any, Any],
        phases: tuple[float, ...],
        batch: int | None,
    ) -> None:
        """Take a step in; `settings` are the rate, the norm before clipping, its limit, the scale.

        The order is that of `record_writer.COLUMNS`.
        """
        rate, norm, limit, scale = settings
        row = [
            *owner, round(time.time(), 3), None, rate, norm, limit, scale,
            len(losses.values), batch, *phases,
        ]  # fmt: skip
        self._waiting.append((row, losses))

    def add_passed(self, owner: int, step: int, loss: float | None) -> None:
        """Take in a step of which only the loss is known, if that."""
        if loss is not None:
            self._waiting.append(((owner, step, None, loss), None))

    def drain(self, writer: Writer, *, at_once: bool = False) -> bool:
        """Write the steps whose numbers have arrived; tell whether all losses were finite."""
        now = perf_counter()
        is_early = len(self._waiting) < TOGETHER and now - self._drained < LATEST_S
        if is_early and not at_once:
            last = self._waiting[-1][1] if self._waiting else None
            if last is None or last.is_known():
                return True
        self._drained = now
        is_sound = True
        while self._waiting:
            row, losses = self._waiting[0]
            if losses is None:
                self._waiting.popleft()
                writer.step((*row, *UNSEEN))
                continue
            norm = row[5]
            if not losses.are_here() or (isinstance(norm, Later) and not norm.is_here()):
                break
            self._waiting.popleft()
            if isinstance(norm, Later):
                row[5] = norm.value
            row[3] = losses.total()
            is_sound = is_sound and (row[3] is None or isfinite(row[3]))
            writer.step(tuple(row))
        return is_sound
