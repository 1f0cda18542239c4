"""A large log read in parts, side by side.

A part is read by a program of its own that runs nothing but this module: unlike a worker of
`multiprocessing`, it never runs the user's main script again. Where it cannot be started or fails,
its part is read here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from traindx.readers import deadline
from traindx.readers.formats.console.blocks import MAX_LINE, Blocks, wide_encoding
from traindx.readers.formats.console.log_scan import LogScan

MIN_PART = 48 << 20  # bytes that are worth starting a program for
MAX_PARTS = 4  # each of them needs memory
POLL_S = 0.01
_PROGRAM = "import sys; from traindx.readers.formats.console.parts import work; work(sys.argv[1])"


def scan_log(scan: LogScan, min_part: int = MIN_PART) -> None:
    """Run a scan, in parts where the log is large; what it finds is the same."""
    path = scan.blocks.path
    bounds = _bounds(path, min_part)
    if len(bounds) < 2:
        scan.run()
        return
    scan.blocks.end = bounds[1]
    parts = []
    for start, end in zip(bounds[1:], [*bounds[2:], None], strict=True):
        parts.append(LogScan(Blocks(path, scan.blocks.size, start, end), scan.many, scan.signs))
    with tempfile.TemporaryDirectory(prefix="traindx-") as folder:
        jobs = [_Job(part, Path(folder) / f"part-{i}") for i, part in enumerate(parts)]
        try:
            scan.run()
            for job in jobs:
                if scan.is_cut_short:
                    break
                scan.append(job.result())
        finally:
            for job in jobs:
                job.stop()


def _bounds(path: Path, min_part: int) -> list[int]:
    """Return where the parts of a log begin, each after the end of a line."""
    size = path.stat().st_size
    count = min(_processors(), MAX_PARTS, size // min_part)
    bounds = [0]
    with path.open("rb") as file:
        if wide_encoding(file.read(4)) is not None:
            return bounds
        for i in range(1, count):
            file.seek(size * i // count)
            line = file.readline(MAX_LINE)
            if line.endswith(b"\n") and bounds[-1] < file.tell() < size:
                bounds.append(file.tell())
    return bounds


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class _Job:
    """A part of a log that another program reads."""

    def __init__(self, part: LogScan, file: Path) -> None:
        self.part = part
        self.file = file
        self.process: subprocess.Popen[bytes] | None = None
        source = str(Path(__file__).parents[4])
        paths = [source, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        try:
            file.write_bytes(pickle.dumps(part))
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(file)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:  # no such program, no more processes, no more room
            self.process = None

    def result(self) -> LogScan:
        """Return the part as it was read, there or here."""
        while self.process is not None and self.process.poll() is None:
            if deadline.is_over():
                self.stop()
                self.part.is_cut_short = True
                return self.part
            time.sleep(POLL_S)
        if self.process is not None and self.process.returncode == 0:
            # written by our own program a moment ago, in a folder that is ours alone
            part = pickle.loads(self.file.with_suffix(".read").read_bytes())
            if isinstance(part, LogScan):
                return part
        self.part.run()
        return self.part

    def stop(self) -> None:
        """End the program if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def work(file: str) -> None:
    """Read the part of a log that a file describes, and leave the result beside it."""
    part: LogScan = pickle.loads(Path(file).read_bytes())
    part.run()
    part.forget()
    Path(file).with_suffix(".read").write_bytes(pickle.dumps(part, protocol=5))
