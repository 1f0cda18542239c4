"""How many programs of strangers `traindx run` names the cause of, riding along.

    python -m bench.strangers.live [SET[/HAND] …] [--keep DIR] [--recorded]

Each program runs on a copy, under the recorder, with its source beside it. With `--keep`, the
recordings stay there and are judged again without a run of the programs; with `--recorded` too,
only those are judged. Of each set: whether the first cause is right, whether it points at the
line of the label, false alarms on sound programs, and the same by the family of the cause. A
program that cannot run here, for a package or a file is missing, is counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.scores import NEAR
from bench.strangers.__main__ import HOME
from traindx.api import diagnose_run
from traindx.causes import families
from traindx.model.findings import Hypothesis
from traindx.model.run import Run

SECONDS = 240  # for one program on a shared machine
# a package, a file, an argument or a device is missing; the launcher says that a rank failed
ABSENT = ("ModuleNotFoundError", "ImportError", "FileNotFoundError", "ChildFailedError")
FAMILIES = {cause.name: family.name for family in families() for cause in family.causes}
RANKS = ("init_process_group", "DistributedSampler", "torchrun")


@dataclass(frozen=True)
class Judgement:
    """What the first root cause of a recorded program is worth."""

    verdict: str  # right, other, silent; of a sound program: alarm, sound; not run
    family: str  # of the cause that the label names
    has_line: bool  # of those that are right: whether the label's line is the one pointed at


def main() -> int:
    """Print the figures of each set, and with --verbose one line per program."""
    parser = argparse.ArgumentParser(prog="python -m bench.strangers.live")
    parser.add_argument("sets", nargs="*", default=["studied"])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--recorded", action="store_true", help="judge what was recorded before")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="strangers-"))
    for name in options.sets:
        judged = []
        for label in sorted((HOME / name).rglob("label.json")):
            folder = keep / label.parent.relative_to(HOME)
            if options.recorded and not is_recorded(folder):
                continue
            said = json.loads(label.read_text(encoding="utf-8"))
            run, causes = causes_of(label.parent, folder)
            judged.append(judge(said, causes, has_run=has_run(run)))
            if options.verbose:
                shown = ", ".join(h.cause for h in causes[:3]) or "nothing"
                verdict = judged[-1].verdict + (", line" if judged[-1].has_line else "")
                where = label.parent.relative_to(HOME)
                print(f"  {verdict}: {where}: {said['cause']}: {shown}", flush=True)
        print("\n".join(_figures(name, judged)), flush=True)
    if options.keep is None:
        shutil.rmtree(keep, ignore_errors=True)
    return 0


def is_recorded(folder: Path) -> bool:
    """Tell whether a program was recorded to its end."""
    return (folder / "recording" / "run.json").exists()


def causes_of(program: Path, folder: Path) -> tuple[Run | None, tuple[Hypothesis, ...]]:
    """Return a recorded run of a program and the root causes that it shows; recorded once."""
    if not is_recorded(folder):
        _record(program, folder, folder / "recording")
    if not is_recorded(folder):
        return None, ()
    run, diagnosis = diagnose_run(folder / "recording")
    return run, diagnosis.root_causes


def has_run(run: Run | None) -> bool:
    """Tell whether a program got as far as its own code would take it on this machine."""
    if run is None or run.recording is None:
        return False
    steps = sum(p.counts.steps for p in run.recording.processes if p.counts is not None)
    return steps > 0 or not run.failures or any(f.type not in ABSENT for f in run.failures)


def judge(
    said: Mapping[str, Any], causes: Sequence[Hypothesis], *, has_run: bool = True
) -> Judgement:
    """Set the first root cause against a label."""
    if said["cause"] is None:
        verdict = "alarm" if causes and has_run else "sound" if has_run else "not run"
        return Judgement(verdict, "", False)
    family = FAMILIES.get(said["cause"], "other")
    is_right = bool(causes) and causes[0].cause in {said["cause"], *said.get("accepted", ())}
    if not is_right:
        verdict = "not run" if not has_run else "other" if causes else "silent"
        return Judgement(verdict, family, False)
    place = causes[0].location
    is_there = (
        place is not None
        and place.line is not None
        and Path(place.file).name == Path(said["file"]).name
        and abs(place.line - said["line"]) <= NEAR
    )
    return Judgement("right", family, is_there)


def _figures(name: str, judged: Sequence[Judgement]) -> Iterator[str]:
    """Yield the lines of a set: the whole of it, and the families of its causes."""
    faulty = [j for j in judged if j.family and j.verdict != "not run"]
    sound = [j for j in judged if not j.family and j.verdict != "not run"]
    right = [j for j in faulty if j.verdict == "right"]
    alarms = sum(j.verdict == "alarm" for j in sound)
    lines = sum(j.has_line for j in right)
    yield (
        f"{name}: first cause right {len(right)}/{len(faulty)}, at the line {lines}/{len(right)}, "
        f"false alarms {alarms}/{len(sound)}, cannot run here {len(judged) - len(faulty + sound)}"
    )
    for family, count in sorted(Counter(j.family for j in faulty).items()):
        yield f"  {family}: {sum(j.family == family for j in right)}/{count}"


def _record(program: Path, folder: Path, recording: Path) -> None:
    copy = folder / "program"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(program, copy, ignore=shutil.ignore_patterns("label.json"))
    entry = entry_of(copy)
    command = [sys.executable, entry]
    text = "".join(p.read_text(encoding="utf-8") for p in copy.rglob("*.py"))
    if any(word in text for word in RANKS):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", entry]
    recorder = [sys.executable, "-m", "traindx", "run", "--quiet", "--max-time", "20"]
    with open(os.devnull, "wb") as nowhere:
        subprocess.run(
            ["timeout", "-s", "INT", "-k", "20", str(SECONDS), *recorder, "--output",
             str(recording), "--", *command],
            cwd=copy, stdout=nowhere, stderr=nowhere, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip


def entry_of(folder: Path) -> str:
    """Return the file that a user would start: the one with a main guard, or the longest script."""
    files = sorted(folder.glob("*.py"))
    texts = {f: f.read_text(encoding="utf-8") for f in files}
    guarded = [f for f in files if "__main__" in texts[f]]
    names = {f.stem for f in files}
    imported = {n for n in names for t in texts.values() if f"import {n}" in t or f"from {n}" in t}
    free = [f for f in (guarded or files) if f.stem not in imported] or guarded or files
    return max(free, key=lambda f: len(texts[f])).name


if __name__ == "__main__":
    sys.exit(main())
