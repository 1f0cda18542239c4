"""Time and memory of `traindx check`, beside torchfix and ruff on the same files.

python -m bench.check_speed [PATH …]; by default the installed transformers and one training script.

CPU time is what to compare where the machine is shared. Each program runs once before it is
measured, for an installed package has its bytecode.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE / "cache"
SCRIPT = HERE / "strangers" / "developed" / "a" / "dqn-cliff" / "train.py"
LIBRARY = "transformers"
MEGABYTE = 1 << 20
UNIT = 1 if sys.platform == "darwin" else 1024  # of a peak, in bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a program took."""

    cpu_s: float
    wall_s: float
    peak: int  # bytes


def main() -> int:
    """Print one table for each path."""
    programs = dict(_programs())
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{time.strftime('%Y-%m-%d')}, {machine}")
    for command in programs.values():
        _cost([*command, str(SCRIPT)])
    for path in _paths():
        print(f"\n| {_title(path)} | CPU s | wall s | peak MB | CPU, times ours |")
        print("|---|---|---|---|---|")
        ours = 0.0
        for name, command in programs.items():
            cost = _cost([*command, str(path)])
            ours = ours or cost.cpu_s
            figures = f"{cost.cpu_s:.2f} | {cost.wall_s:.2f} | {cost.peak / MEGABYTE:.0f}"
            print(f"| {name} | {figures} | {cost.cpu_s / ours:.2f} |", flush=True)
    return 0


def _paths() -> list[Path]:
    found = importlib.util.find_spec(LIBRARY)
    tree = HERE.parent / "src" if found is None or not found.origin else Path(found.origin).parent
    return [Path(a) for a in sys.argv[1:]] or [tree, SCRIPT]


def _title(path: Path) -> str:
    if path.is_dir():
        return f"{path.name}, {sum(1 for _ in path.rglob('*.py'))} files"
    return f"one file, {len(path.read_text(encoding='utf-8').splitlines())} lines"


def _programs() -> Iterator[tuple[str, list[str]]]:
    yield "traindx check", [sys.executable, "-m", "traindx", "check"]
    torchfix = _torchfix()
    if torchfix is None:
        print("torchfix is left out: it could not be installed here\n")
    else:
        yield "torchfix, one process", [str(torchfix), "--select", "ALL", "--jobs", "1"]
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--exit-zero"]
    yield "ruff check, no cache", ruff


def _torchfix() -> Path | None:
    """The program torchfix, from an environment of its own; None where it cannot be had."""
    program = CACHE / "torchfix" / "bin" / "torchfix"
    if not program.exists():
        home = program.parent.parent
        made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False)
        if made.returncode:
            return None
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "torchfix"]
        if subprocess.run(pip, capture_output=True, check=False, timeout=300).returncode:
            return None
    return program


def _cost(command: list[str]) -> Cost:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
    _, _, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * UNIT)


if __name__ == "__main__":
    sys.exit(main())
