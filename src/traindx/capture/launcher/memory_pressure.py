"""What is known about memory when a process was killed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

VMSTAT = Path("/proc/vmstat")
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def kills_counted() -> int | None:
    """Return how many processes the kernel has killed for want of memory since it started."""
    try:
        match = re.search(r"^oom_kill (\d+)$", VMSTAT.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return None if match is None else int(match[1])


def available_bytes() -> int | None:
    """Return the memory that processes here may use: of the machine, or of the container."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    for path in LIMITS:
        try:
            total = min(total, int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return total


def peak_bytes(ru_maxrss: int) -> int:
    """Return the peak of a process's memory from its resource usage."""
    return ru_maxrss if sys.platform == "darwin" else ru_maxrss * 1024
