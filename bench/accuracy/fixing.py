"""Whether an offered patch works: applied to a copy of the program, run again, symptom gone.

The patch is that of the first root cause, whether that cause is right or not. It works if the
program then ends as the healthy one does.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from bench.accuracy import judging
from bench.accuracy.incidents import Incident, incidents
from bench.corpus import truth
from bench.corpus.generate import CACHE
from bench.corpus.program import Program, programs
from bench.corpus.runs import Ran, Runner
from bench.corpus.truth import Health

HEADER = re.compile(r"^(---|\+\+\+) (?:[ab]/)?(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a program with the patch that was offered; None where nothing can tell."""

    incident: str
    artifacts: str
    works: bool | None
    says: str


def read_kept(half: str) -> list[Fixed]:
    """Return what an earlier run found."""
    path = _kept(half)
    if not path.exists():
        return []
    return [Fixed(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _kept(half: str) -> Path:
    return judging.KEPT / f"{half}-fixes.jsonl"


def try_all(half: str, artifacts: str) -> Iterator[Fixed]:
    """Try every patch that was offered for a run with a fault."""
    found = {i.name: i for i in incidents(half) if not i.is_healthy}
    originals = {p.name: p for p in programs(half)}
    runner = Runner(CACHE)
    try:
        for judged in judging.read_kept(half):
            incident = found.get(judged.incident)
            if judged.artifacts == artifacts and judged.patch and incident is not None:
                works, says = _try(incident, judged.patch, originals[incident.program], runner)
                yield Fixed(incident.name, artifacts, works, says)
    finally:
        runner.close()


def _try(
    incident: Incident, patch: str, original: Program, runner: Runner
) -> tuple[bool | None, str]:
    project = incident.folder / "project"
    broken = {path: (project / path).read_text(encoding="utf-8") for path in original.files}
    try:
        mended = apply(patch, broken)
    except ValueError as error:
        return False, f"does not apply: {error}"
    label = json.loads((incident.folder / "label.json").read_text(encoding="utf-8"))
    seed, healthy = (
        label["seed"],
        Health(tuple(label["healthy_outcomes"]), original.is_higher_better),
    )
    runs = [
        runner.run(replace(original, files=files), seed, is_launched=True)
        for files in (mended, broken, original.files)
    ]
    return judge(original, healthy, *runs)


def judge(
    program: Program, healthy: Health, mended: Ran, broken: Ran, twin: Ran
) -> tuple[bool | None, str]:
    """Compare a mended run with the broken one and with its twin that never had the fault."""
    if mended.crashed:
        return False, f"ends with exit code {mended.code}"
    outcome = mended.outcome(program)
    if outcome is None or not math.isfinite(outcome):
        return False, f"ends at {outcome}"
    gap = healthy.gap(outcome)
    says = f"ends at {outcome:g}, {gap:.1f} healthy spreads from the healthy median"
    if gap >= truth.BEYOND_ELSEWHERE:
        return False, says
    before = None if broken.crashed else broken.outcome(program)
    if before is None or healthy.gap(before) >= truth.BEYOND_ELSEWHERE:
        return True, says
    # the fault shows in something else than the outcome
    is_as_without = truth.course(mended.log) == truth.course(twin.log)
    return (True, "prints what the healthy program prints") if is_as_without else (None, says)


def apply(patch: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files with a patch applied, as `git apply` does it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        named = HEADER.sub(lambda m: f"{m[1]} {m[1][0]}/{_inside(m[2], files)}", patch)
        done = subprocess.run(
            [shutil.which("git") or "git", "apply", "-p1", "-"],
            input=named, cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        )  # fmt: skip
        if done.returncode:
            raise ValueError(done.stderr.strip()[-200:])
        return {path: (folder / path).read_text(encoding="utf-8") for path in files}


def _inside(path: str, files: Mapping[str, str]) -> str:
    """Return the file of the program that a path outside of it means: the longest common end."""
    parts = PurePosixPath(path).parts
    ends = ["/".join(parts[i:]) for i in range(len(parts))]
    return next((end for end in ends if end in files), path)


def keep(tried: Iterable[Fixed], half: str) -> None:
    """Write what became of each as it comes."""
    judging.KEPT.mkdir(parents=True, exist_ok=True)
    with _kept(half).open("w", encoding="utf-8") as file:
        for fixed in tried:
            print(json.dumps(asdict(fixed)), file=file, flush=True)
