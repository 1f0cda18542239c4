"""Speed of `traindx check`, beside torchfix and ruff on the same tree.

python -m bench.check_speed [FOLDER]; the default tree is the installed torch.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(__file__).parent / "cache"
SUBTREE = "nn"  # of torch: a few hundred files keep the comparison short


def _tree() -> Path:
    given = [Path(a) for a in sys.argv[1:] if Path(a).is_dir()]
    if given:
        return given[0]
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return Path(__file__).parent.parent / "src"
    return Path(found.origin).parent / SUBTREE


def _torchfix() -> list[str] | None:
    """The command of torchfix, from an environment of its own; None where it cannot be had."""
    program = CACHE / "torchfix" / "bin" / "torchfix"
    if not program.exists():
        home = program.parent.parent
        made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False)
        if made.returncode:
            return None
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "torchfix"]
        if subprocess.run(pip, capture_output=True, check=False, timeout=300).returncode:
            return None
    return [str(program), "--select", "ALL"]


def _duration_s(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - start


def main() -> int:
    """Print one row per program."""
    tree = _tree()
    count = sum(1 for _ in tree.rglob("*.py"))
    ways = [("traindx check", [sys.executable, "-m", "traindx", "check", str(tree)])]
    torchfix = _torchfix()
    if torchfix is None:
        print("torchfix is left out: it could not be installed here\n")
    else:
        ways.append(("torchfix", [*torchfix, str(tree)]))
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--exit-zero"]
    ways.append(("ruff check, no cache", [*ruff, str(tree)]))
    print(
        f"| checking {count} files of {tree.parent.name}/{tree.name} | s | files/s |\n|---|---|---|"
    )
    for name, command in ways:
        taken = _duration_s(command)
        print(f"| {name} | {taken:.1f} | {count / taken:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
