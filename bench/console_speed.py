"""Reading speed of console logs, beside a plain loop that extracts the loss only, and beside grep.

python -m bench.console_speed [megabytes]
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from traindx.readers.formats.console.reader import read

MEGABYTES = 500
REPEATS = 3  # the best one counts: the first may wait for the disk
CHUNK = 20_000  # lines
_LOSS = re.compile(r"loss['\"]?[:= ]+([-+]?[\d.]+(?:[eE][-+]?\d+)?|nan|inf)")


def write_log(path: Path, megabytes: float, seed: int = 0) -> None:
    """Write a log of mixed lines: four ways to report, checkpoints, chatter, some NaN."""
    rng = random.Random(seed)
    size = int(megabytes * 1e6)
    step = 0
    with path.open("w") as file:
        while file.tell() < size:
            file.write("".join(_lines(rng, step, CHUNK)))
            step += CHUNK


def _lines(rng: random.Random, first: int, count: int) -> Iterator[str]:
    for step in range(first, first + count):
        epoch, clock = (
            step // 50_000,
            f"{step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}",
        )
        loss = "nan" if rng.random() < 1e-4 else f"{2.0 + rng.random() * 9:.4f}"
        rate, norm = rng.random() * 1e-4, rng.random() * 12
        yield (
            f"2024-03-01 {clock},{step % 1000:03d} - trainer - INFO - epoch {epoch} step {step}"
            f" loss: {loss} acc: {rng.random():.4f} lr: {rate:.3e} grad_norm: {norm:.3f}"
            f" time: {rng.random():.3f}s\n"
        )
        if step % 10 == 0:
            yield f"iter {step}: loss {loss}, time {rng.random() * 200:.2f}ms, mfu {norm:.2f}%\n"
        if step % 20 == 0:
            yield (
                f"{{'loss': {loss}, 'grad_norm': {norm!r}, 'learning_rate': {rate!r},"
                f" 'epoch': {step / 50_000:.2f}}}\n"
            )
        if step % 50 == 0:
            score = f"loss 2.{step % 997} accuracy {rng.random():.3f}"
            yield f"Validation: epoch {epoch} step {step} {score}\n"
        if step % 25 == 0:
            yield f"[{clock}] worker {step % 8} prefetched shard-{step % 4096:05d} in {norm:.1f}s\n"
        if step % 1000 == 0:
            yield f"Saved checkpoint to /data/runs/exp-7/step_{step}/model.safetensors (412 MB)\n"


def plain_loop(path: Path) -> int:
    """Collect the losses, as everyone would."""
    losses = []
    with path.open() as file:
        for line in file:
            match = _LOSS.search(line)
            if match:
                losses.append(float(match[1]))
    return len(losses)


def traindx(path: Path) -> int:
    return sum(len(series) for series in read(path).series.values())


def grep(path: Path) -> int:
    found = subprocess.run(["grep", "-c", "loss", str(path)], capture_output=True, check=False)
    return int(found.stdout or 0)


def _fastest_s(ways: list[tuple[str, Callable[[Path], int]]], path: Path) -> dict[str, float]:
    """Return the best time of each way; taking turns, all of them see the same machine."""
    best = {name: float("inf") for name, _ in ways}
    for _ in range(REPEATS):
        for name, work in ways:
            start = time.perf_counter()
            work(path)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> int:
    """Print one row per way to read a generated log."""
    given = [a for a in sys.argv[1:] if a.replace(".", "", 1).isdigit()]
    megabytes = float(given[0]) if given else MEGABYTES
    ways: list[tuple[str, Callable[[Path], int]]] = [
        ("traindx, every metric", traindx),
        ("plain Python loop, loss only", plain_loop),
    ]
    if shutil.which("grep"):
        ways.append(("grep -c loss", grep))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        write_log(path, megabytes)
        size = path.stat().st_size / 1e6
        print(f"| reading a log of {size:.0f} MB | MB/s |\n|---|---|")
        for name, duration_s in _fastest_s(ways, path).items():
            print(f"| {name} | {size / duration_s:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
