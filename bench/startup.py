"""Start-up time of the command line, beside that of Python itself."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 15


def _duration_s(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    """Print the medians of interleaved repeats, so that both see the same machine."""
    script = Path(sys.executable).with_name("traindx")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "traindx"]
    ways = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "traindx --help": [*program, "--help"],
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, command in ways.items():
            taken[name].append(_duration_s(command))
    base = statistics.median(taken["python -c pass"])
    print("| start-up | ms | times |\n|---|---|---|")
    for name, durations in taken.items():
        median = statistics.median(durations)
        print(f"| {name} | {1000 * median:.0f} | {median / base:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
