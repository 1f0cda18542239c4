"""Speed of the TensorBoard reader beside TensorBoard's own EventAccumulator, at equal results.

    python -m bench.tensorboard_speed [folder]

The file is written by TensorBoard's event writer: ten tags of a hundred thousand steps each. With
a folder, the file is kept there and used again.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from traindx.model.run import Run
from traindx.readers.formats.tensorboard.reader import read

TAGS = ("train/loss", "val/loss", "train/accuracy", "val/accuracy", "lr", "grad_norm",
        "train/loss/box", "train/loss/class", "throughput", "memory/allocated")  # fmt: skip
STEPS = 100_000
REPEATS = 5


def write(folder: Path) -> Path:
    """Write a million scalars with TensorBoard's own writer, or find those of the last time."""
    kept = sorted(folder.glob("*tfevents*"))
    if kept:
        return kept[0]
    # imported by name, for the library has no types
    event = import_module("tensorboard.compat.proto.event_pb2").Event
    summary = import_module("tensorboard.compat.proto.summary_pb2").Summary
    library = import_module("tensorboard.summary.writer.event_file_writer")
    writer = library.EventFileWriter(str(folder), max_queue_size=1000)
    values = np.random.default_rng(0).random((STEPS, len(TAGS)))
    values[STEPS // 2, 0] = math.nan
    values[STEPS // 3, 1] = math.inf
    for step in range(STEPS):
        for tag, value in zip(TAGS, values[step], strict=True):
            told = summary(value=[summary.Value(tag=tag, simple_value=value)])
            writer.add_event(event(wall_time=1.7e9 + step, step=step, summary=told))
    writer.close()
    return next(folder.glob("*tfevents*"))


def accumulate(path: Path) -> Any:
    """Read the file with EventAccumulator, keeping every scalar."""
    library = import_module("tensorboard.backend.event_processing.event_accumulator")
    accumulator = library.EventAccumulator(str(path), size_guidance={"scalars": 0})
    accumulator.Reload()
    return accumulator


def count_equal(run: Run, accumulator: Any) -> int:
    """Return how many points are the same in both, step and value, bit by bit."""
    equal = 0
    for series in run.series.values():
        theirs = accumulator.Scalars(series.origin.name)
        values = np.array([e.value for e in theirs], dtype=np.float64)
        steps = np.array([e.step for e in theirs], dtype=np.float64)
        if len(values) == len(series):
            same = (values.view(np.int64) == series.values.view(np.int64)) | (
                np.isnan(values) & np.isnan(series.values)
            )
            equal += int((same & (steps == series.steps)).sum())
    return equal


def measure(folder: Path) -> int:
    path = write(folder)
    ours = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        run = read(path)
        ours.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    accumulator = accumulate(path)
    theirs_s = time.perf_counter() - begun
    total = len(TAGS) * STEPS
    equal = count_equal(run, accumulator)
    ours_s = float(np.median(ours))
    print(f"{total:,} scalars, {path.stat().st_size / 1e6:.1f} MB, {equal:,} equal in both\n")
    print("| reader | seconds | scalars per second | times as fast |\n|---|---|---|---|")
    print(f"| traindx (median of {REPEATS}) | {ours_s:.2f} | {total / ours_s:,.0f}"
          f" | {theirs_s / ours_s:.0f} |")  # fmt: skip
    print(f"| EventAccumulator | {theirs_s:.2f} | {total / theirs_s:,.0f} | 1 |")
    return 0 if equal == total else 1


def main() -> int:
    """Print the two times and whether the results are equal."""
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        return measure(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
