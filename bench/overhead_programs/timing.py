"""Time and CPU time of a stretch of steps."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path


def whole_cpu_s() -> float:
    """Return the CPU time of this process and of all others of the same measurement that still run.

    A recorder may have processes of its own, even in other sessions; they are a part of the price.
    What they have in common is the folder of the measurement in their environment.
    """
    total_s = time.process_time()
    mark = f"OVERHEAD_FOLDER={os.environ.get('OVERHEAD_FOLDER', '')}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) == os.getpid():
                continue
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                threads = (folder / "task").glob("*/schedstat")
                total_s += sum(int(t.read_text().split()[0]) for t in threads) * 1e-9
        except (OSError, ValueError, IndexError):  # it ended meanwhile, or it is not ours
            continue
    return total_s


class Stopwatch:
    """Takes the time of every step, and of all of them together."""

    def __init__(self) -> None:
        self._steps_s: list[float] = []
        self._cpu_s = whole_cpu_s()
        self._began_s = self._last_s = time.perf_counter()

    @property
    def count(self) -> int:
        return len(self._steps_s)

    @property
    def elapsed_s(self) -> float:
        return self._last_s - self._began_s

    def lap(self) -> None:
        """Note that a step is over."""
        now = time.perf_counter()
        self._steps_s.append(now - self._last_s)
        self._last_s = now

    def result(self) -> dict[str, float]:
        """Return the milliseconds per step."""
        count = max(1, len(self._steps_s))
        return {
            "steps": len(self._steps_s),
            "wall_median_ms": 1e3 * statistics.median(self._steps_s or [0.0]),
            "wall_mean_ms": 1e3 * self.elapsed_s / count,
            "cpu_mean_ms": 1e3 * (whole_cpu_s() - self._cpu_s) / count,
        }
