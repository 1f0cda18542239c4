"""Programs that learn, only worse than they could: does `traindx probe` find the change that helps?

    python -m bench.probes [--folder DIR] [--only TEXT] [--max-time SECONDS]

Each folder below `bench/strangers/worse/` holds a program and `label.json`: `cause` and `accepted`
name what is wrong, `cause` null means that the program does as well as it can. Counted are the
programs for which a helpful change names an accepted cause, those where it stands first, and the
changes that are invented where nothing helps.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "strangers" / "worse"
MAX_TIME_S = 300.0
GRACE_S = 60.0
MAIN = ("train.py", "main.py")
ASIDE = frozenset({"fixed.py"})


@dataclass(frozen=True, slots=True)
class Labelled:
    """A program, and what is wrong with it."""

    folder: Path
    cause: str | None
    accepted: frozenset[str]
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What probing came to for a program."""

    program: Labelled
    helpful: tuple[tuple[str, str], ...]  # changes and their causes, the leading one first
    first: str
    took_s: float
    failed: str = ""

    @property
    def is_found(self) -> bool:
        return any(cause in self.program.accepted for _, cause in self.helpful)

    @property
    def is_first(self) -> bool:
        return self.first in self.program.accepted


def programs(folder: Path, only: str) -> Iterator[Labelled]:
    """Yield the labelled programs below a folder."""
    for label in sorted(folder.glob("*/label.json")):
        told = json.loads(label.read_text(encoding="utf-8"))
        home = label.parent
        if only not in home.name:
            continue
        named = [home / n for n in MAIN if (home / n).is_file()]
        rest = [p for p in sorted(home.glob("*.py")) if p.name not in ASIDE]
        script = (named or rest)[0]
        command = tuple(told.get("command") or (sys.executable, script.name))
        cause = told.get("cause")
        accepted = frozenset({*told.get("accepted", ()), *([cause] if cause else [])})
        yield Labelled(home, cause, accepted, command)


def probed(program: Labelled, max_time_s: float) -> Outcome:
    """Probe a program as a user would."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place).resolve() / program.folder.name
        shutil.copytree(program.folder, copy, ignore=shutil.ignore_patterns("label.json", *ASIDE))
        words = [sys.executable, "-m", "traindx.cli.main", "probe", "--format", "json"]
        words += ["--max-time", f"{max_time_s:g}", "--", *program.command]
        try:
            done = subprocess.run(
                words, cwd=copy, capture_output=True, text=True, check=False,
                timeout=max_time_s + GRACE_S, env=dict(os.environ),
            )  # fmt: skip
            told: Mapping[str, Any] = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError) as error:
            return Outcome(program, (), "", time.monotonic() - began, f"{type(error).__name__}")
    helpful = tuple((p["change"], p["cause"]) for p in told["probes"] if p["helps"])
    roots = [r["cause"] for r in told["root_causes"]]
    first = roots[0] if roots else ""
    return Outcome(program, helpful, first, time.monotonic() - began)


def main() -> None:
    """Probe all programs and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--only", default="")
    parser.add_argument("--max-time", type=float, default=MAX_TIME_S)
    options = parser.parse_args()
    found = []
    for program in programs(options.folder, options.only):
        outcome = probed(program, options.max_time)
        found.append(outcome)
        _print(outcome)
    _count(found)


def _print(outcome: Outcome) -> None:
    wanted = outcome.program.cause or "fine"
    helpful = "; ".join(f"{change} ({cause})" for change, cause in outcome.helpful) or "-"
    is_right = outcome.is_found if outcome.program.cause else not outcome.helpful
    mark = "✓" if is_right and not outcome.failed else "✗"
    name = outcome.program.folder.name
    first = f" · first {outcome.first}" if outcome.first else ""
    print(
        f"{mark} {name:24s} {wanted:26s} {outcome.took_s:5.0f} s  {helpful}{first} {outcome.failed}"
    )
    sys.stdout.flush()


def _count(found: list[Outcome]) -> None:
    worse = [o for o in found if o.program.cause]
    fine = [o for o in found if not o.program.cause]
    hits, firsts = sum(o.is_found for o in worse), sum(o.is_first for o in worse)
    invented = sum(bool(o.helpful) for o in fine)
    accused = sum(bool(o.first) for o in fine)
    late = sum(o.took_s > MAX_TIME_S + 2 for o in found)
    print(f"helpful change found: {hits} of {len(worse)}; its cause first: {firsts}")
    print(f"fine programs: {invented} of {len(fine)} with an invented help, {accused} with a cause")
    print(f"over the time: {late} of {len(found)}")


if __name__ == "__main__":
    main()
