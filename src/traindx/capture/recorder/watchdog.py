"""A thread that notices when training makes no progress, and writes down where it stands."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from . import collectives, places

Progress = Callable[[], tuple[int, float, int]]
Write = Callable[[dict[str, Any]], None]

EVERY_S = 1.0
LEAST_S = 60.0  # saving a checkpoint takes that long without anything being wrong
STEPS = 20.0  # this many usual steps without progress
FIRST_S = 300.0  # before the first step: imports, downloads, caches, compilation
# what one look counts at most: a process that was stopped, or a laptop that slept, did not hang
MOST_PER_LOOK_S = 5.0
MOST_FRAMES = 40
MOST_THREADS = 32
OWN_FOLDER = f"{Path(__file__).parent}{os.sep}"


class Watchdog:
    """Watches a counter that moves with all progress; writes a record per look at a stall.

    The first look is after `hang_after_s`, or many times the usual step; while the stall lasts,
    the next are after twice and four times that, and so on. If it ends, one more record says so.
    """

    def __init__(self, progress: Progress, write: Write, hang_after_s: float | None = None) -> None:
        self._progress = progress
        self._write = write
        self._hang_after_s = hang_after_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._last_count = -1
        self._waited_s = 0.0
        self._looks = 0
        self._stalled_at = 0

    def start(self) -> None:
        """Start watching in a daemon thread."""
        try:
            self._pid = os.getpid()
            self._thread = threading.Thread(
                target=self._watch, name="traindx-watchdog", daemon=True
            )
            self._thread.start()
        except Exception:  # no more threads: train without a watchdog
            self._thread = None

    def stop(self) -> None:
        """Stop watching; in a forked child the thread does not exist and its locks are not safe."""
        if self._pid == os.getpid():
            self._stopped.set()

    def _watch(self) -> None:
        last = time.monotonic()
        try:
            while not self._stopped.wait(EVERY_S):
                now = time.monotonic()
                self.look(min(now - last, MOST_PER_LOOK_S))
                last = now
        except Exception:  # at the end of the interpreter nothing is sure to exist any more
            return

    def look(self, passed_s: float) -> None:
        """Compare the counter with the last look, `passed_s` ago."""
        count, median_s, step = self._progress()
        if count != self._last_count:
            if self._looks:
                self._write_record(self._stalled_at, median_s, is_over=True)
            self._last_count, self._waited_s, self._looks = count, 0.0, 0
            return
        self._waited_s += passed_s
        if self._waited_s >= self._patience_s(median_s) * 2**self._looks:
            self._looks += 1
            self._stalled_at = step
            self._write_record(step, median_s, is_over=False)

    def _patience_s(self, median_s: float) -> float:
        if self._hang_after_s is not None:
            return self._hang_after_s
        if math.isnan(median_s):
            return FIRST_S
        return max(LEAST_S, STEPS * median_s)

    def _write_record(self, step: int, median_s: float, *, is_over: bool) -> None:
        self._write(
            {
                "k": "stall",
                "step": step,
                "waited_s": round(self._waited_s, 1),
                "median_s": median_s,
                "stacks": [] if is_over else stacks(),
                "collectives": [] if is_over else collectives.dump(),
                "is_over": is_over,
            }
        )


def stacks() -> list[Any]:
    """Return where every other thread stands: `[name, places]`, outermost first, main first."""
    names = {t.ident: t.name for t in threading.enumerate()}
    main = threading.main_thread().ident
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    ordered = sorted(frames.items(), key=lambda item: item[0] != main)
    found = ([names.get(i, f"thread {i}"), _places(frame)] for i, frame in ordered)
    return [[name, inside] for name, inside in islice(found, MOST_THREADS) if inside]


def _places(innermost: FrameType) -> list[dict[str, Any]]:
    inner = (
        places.place_of(frame)
        for frame in places.frames_below(innermost)
        if not frame.f_code.co_filename.startswith(OWN_FOLDER)
    )
    return list(islice(inner, MOST_FRAMES))[::-1]
