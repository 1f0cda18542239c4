"""Real training programs, healthy and faulty, recorded unmodified: what is found, what is not.

    python -m bench.programs [--keep FOLDER] [--only TEXT] [--plain]

The programs and what is wrong with them stand in `tests/capture/launcher/programs`. Each one runs
as it would under `traindx run`; what it left is judged twice, as a whole and by the records alone.
`--plain` runs each program without the recorder as well and compares what it prints.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx import Diagnosis, diagnose, open_run

PROGRAMS = Path(__file__).parent.parent / "tests" / "capture" / "launcher" / "programs"
RIDE = """
import sys
from traindx.capture.launcher.supervisor import Trip, ride
from traindx.capture.launcher.voice import Voice
sys.exit(ride(Trip(tuple(sys.argv[2:]), sys.argv[1]), Voice(is_quiet=True)).end.shell_code)
"""
TIMEOUT_S = 600
# what a rank of torch says when its own threads lose a race at its end, with or without us
LOST_RACE = "terminate called without an active exception"


@dataclass(frozen=True, slots=True)
class Case:
    """A program with its arguments, and the causes that would be right; none if it is healthy."""

    program: str
    arguments: tuple[str, ...] = ()
    launcher: str = ""
    causes: tuple[str, ...] = ()
    code: str = ""  # what stands on the line to be named

    @property
    def name(self) -> str:
        return " ".join((self.program.removesuffix(".py"), *self.arguments))

    @property
    def command(self) -> list[str]:
        script = [str(PROGRAMS / self.program), *self.arguments]
        if self.launcher == "torchrun":
            launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
            return [sys.executable, *launch, *script]
        return [sys.executable, *script]

    @property
    def line(self) -> int | None:
        """Return the number of the line that the fault stands on."""
        lines = (PROGRAMS / self.program).read_text(encoding="utf-8").splitlines()
        return next((n for n, t in enumerate(lines, 1) if self.code and self.code in t), None)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program printed, and how it ended."""

    exit_code: int
    output: str
    errors: str


def cases() -> list[Case]:
    """Return every program of the table."""
    with (PROGRAMS / "labels.csv").open(encoding="utf-8", newline="") as file:
        return [
            Case(
                row["program"],
                tuple(row["arguments"].split()),
                row["launcher"],
                tuple(row["causes"].split()),
                row["code"],
            )
            for row in csv.DictReader(file)
        ]


def run(case: Case) -> Ran:
    """Run a program as it is."""
    return _run(case.command)


def record(case: Case, folder: Path) -> Ran:
    """Run a program and record it, without the diagnosis at the end."""
    return _run([sys.executable, "-c", RIDE, str(folder), *case.command])


def _run(command: Sequence[str]) -> Ran:
    ran = _run_once(command)
    if LOST_RACE in ran.errors:
        ran = _run_once(command)
    return ran


def _run_once(command: Sequence[str]) -> Ran:
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as cwd:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    return Ran(done.returncode, done.stdout, done.stderr)


def last_counts(folder: Path) -> list[dict[str, Any]]:
    """Return the last counts of every process, to see whether the recorder kept on to the end."""
    ends = []
    for path in sorted(folder.glob("rank*.jsonl")):
        with path.open(encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        counts = [r for r in records if r["k"] == "counts"]
        ends.append(counts[-1] if counts else {})
    return ends


def judge(folder: Path, *, is_bare: bool = False) -> Diagnosis:
    """Diagnose a recording; a bare one has neither the source nor the output of the program."""
    if not is_bare:
        return diagnose(open_run(folder))
    with tempfile.TemporaryDirectory() as place:
        bare = Path(place) / folder.name
        bare.mkdir()
        for path in folder.glob("rank*.jsonl"):
            shutil.copy(path, bare)
        return diagnose(open_run(bare))


def verdict(case: Case, found: Diagnosis) -> str:
    """Say in a word how a diagnosis compares with the truth."""
    causes = [h.cause for h in found.root_causes]
    if not case.causes:
        return "FALSE ALARM" if causes else "quiet"
    if not causes:
        return "MISSED"
    if causes[0] not in case.causes:
        return "second" if set(causes) & set(case.causes) else "WRONG"
    place = found.root_causes[0].location
    if case.line is not None and (place is None or place.line != case.line):
        return f"found, line {None if place is None else place.line} not {case.line}"
    return "found"


def _told(found: Diagnosis) -> str:
    return ", ".join(f"{h.cause} {h.confidence:.2f}" for h in found.root_causes) or "-"


@dataclass(frozen=True, slots=True)
class Row:
    """How one program came out, as a whole and by its records alone."""

    case: Case
    whole: str
    bare: str
    trouble: str


def _row(case: Case, folder: Path, *, with_plain: bool) -> Row:
    recorded = record(case, folder)
    troubles = []
    if with_plain:
        plain = run(case)
        if (plain.exit_code, plain.output) != (recorded.exit_code, recorded.output):
            troubles.append("DIFFERENT OUTPUT")
    ends = last_counts(folder)
    if not ends:
        troubles.append("NOTHING RECORDED")
    troubles += [f"RECORDER OFF: {e.get('why_off')}" for e in ends if e.get("why_off") != ""]
    if not case.causes and recorded.exit_code:
        troubles.append(f"EXIT CODE {recorded.exit_code}: {recorded.errors[-300:]}")
    whole, bare = judge(folder), judge(folder, is_bare=True)
    troubles += [f"FAILED {f.detector}: {f.error}" for f in (*whole.failed, *bare.failed)]
    row = Row(case, verdict(case, whole), verdict(case, bare), "; ".join(troubles))
    truth = " ".join(case.causes) or "healthy"
    cells = [case.name, truth, row.whole, _told(whole), row.bare, _told(bare), row.trouble]
    print(f"| {' | '.join(cells)} |", flush=True)
    return row


def _summarise(title: str, verdicts: Sequence[tuple[Case, str]]) -> None:
    healthy = [v for case, v in verdicts if not case.causes]
    faulty = [v for case, v in verdicts if case.causes]
    found = sum(v.startswith("found") for v in faulty)
    print(
        f"\n{title}: {healthy.count('FALSE ALARM')} false alarms on {len(healthy)} healthy "
        f"programs; {found} of {len(faulty)} faults first, {faulty.count('MISSED')} missed"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row per program and the counts that matter."""
    parser = argparse.ArgumentParser(prog="python -m bench.programs")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs with this in the name")
    parser.add_argument("--plain", action="store_true", help="compare with unrecorded runs")
    options = parser.parse_args(argv)
    print("| program | truth | verdict | root causes | by records alone | root causes | trouble |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as spare:
        place = Path(options.keep or spare)
        place.mkdir(parents=True, exist_ok=True)
        for case in cases():
            if options.only in case.name:
                folder = place / case.name.replace(" ", "-")
                shutil.rmtree(folder, ignore_errors=True)
                rows.append(_row(case, folder, with_plain=options.plain))
    _summarise("as a whole", [(r.case, r.whole) for r in rows])
    _summarise("by the records alone", [(r.case, r.bare) for r in rows])
    return int(any(r.whole == "FALSE ALARM" or r.trouble for r in rows))


if __name__ == "__main__":
    sys.exit(main())
