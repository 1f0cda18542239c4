"""What `traindx verify` says of true causes: programs of strangers whose fault comes with a patch.

    python -m bench.strangers.verified [SET …] [--max-time SECONDS] [--every N]

A true cause that is refuted, and "no problem found" while a fault stands, are the worst outcomes
there are; both are counted apart. With `--every N` only each Nth program is tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.strangers.__main__ import HOME
from bench.strangers.live import entry_of
from traindx.api import check_run
from traindx.model.findings import Hypothesis, Status, Verdict

MAX_TIME_S = 300.0


def main() -> int:
    """Print one line per program and the counts; fail on an outcome that must not be."""
    parser = argparse.ArgumentParser(prog="python -m bench.strangers.verified")
    parser.add_argument("sets", nargs="*", default=["developed"])
    parser.add_argument("--max-time", type=float, default=MAX_TIME_S)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    worst = 0
    for program, cause in list(_patched(options.sets))[:: options.every]:
        started = time.monotonic()
        outcome, is_worst = _outcome(program, cause, options.max_time)
        counts[outcome.split(":")[0]] += 1
        worst += is_worst
        took = time.monotonic() - started
        print(f"{program.name:24} {took:4.0f} s  {cause.cause}: {outcome}", flush=True)
    print(f"\n{dict(counts)}; outcomes that must not be: {worst}")
    return 1 if worst else 0


def _patched(sets: list[str]) -> Iterator[tuple[Path, Hypothesis]]:
    """Yield the programs whose true cause is named first from source, with a patch."""
    for label in (f for s in sets for f in sorted((HOME / s).rglob("label.json"))):
        said = json.loads(label.read_text(encoding="utf-8"))
        named = check_run(str(label.parent))[1].root_causes if said["cause"] else ()
        accepted = {said["cause"], *said.get("accepted", ())}
        if named and named[0].cause in accepted and any(r.patch for r in named[0].remedies):
            yield label.parent, named[0]


def _outcome(program: Path, cause: Hypothesis, max_time_s: float) -> tuple[str, bool]:
    """Return what a user would see who verifies on the command line, and whether that is wrong."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place).resolve() / program.name
        shutil.copytree(program, copy, ignore=shutil.ignore_patterns("label.json"))
        limit = ["--format", "json", "--max-time", str(max_time_s)]
        verify = [sys.executable, "-m", "traindx", "verify", *limit]
        ended = subprocess.run(
            [*verify, "--", sys.executable, entry_of(copy)],
            cwd=copy, capture_output=True, text=True, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    if ended.returncode:
        return f"exit code {ended.returncode}: {ended.stderr.strip().splitlines()[-1]}", False
    return _judged(json.loads(ended.stdout), cause.cause)


def _judged(said: dict[str, Any], cause: str) -> tuple[str, bool]:
    if said["status"] == Status.HEALTHY.value:
        return "NO PROBLEM FOUND", True
    tried = next((e for e in said["experiments"] if e["cause"] == cause), None)
    if tried is None:
        others = ", ".join(e["cause"] for e in said["experiments"]) or "nothing"
        return f"not tested: {others} was", False
    is_refuted = tried["verdict"] == Verdict.REFUTED.value
    verdict = "REFUTED" if is_refuted else tried["verdict"]
    return f"{verdict}: {tried['reason']}", is_refuted


if __name__ == "__main__":
    sys.exit(main())
