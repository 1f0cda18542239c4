"""What traindx says about an incident, from each set of artifacts, kept for the scores to read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.accuracy.incidents import SETS, Incident
from traindx import Diagnosis, TraindxError, diagnose, open_run

KEPT = Path(__file__).parent.parent / "cache" / "accuracy"
MAX_TIME_S = 60.0


@dataclass(frozen=True, slots=True)
class Named:
    """A cause as the diagnosis ranked it."""

    cause: str
    confidence: float
    is_root: bool
    is_shown: bool
    file: str = ""
    line: int | None = None
    has_patch: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The diagnosis of one incident from one set of artifacts."""

    incident: str
    artifacts: str
    status: str
    duration_s: float
    named: tuple[Named, ...] = ()
    failed: tuple[str, ...] = ()
    patch: str | None = None

    @property
    def roots(self) -> tuple[Named, ...]:
        return tuple(n for n in self.named if n.is_root)


def judge_all(
    wanted: Iterable[Incident], sets: Iterable[str] = SETS, jobs: int = 2
) -> Iterator[tuple[Judged, Diagnosis | None]]:
    """Diagnose every incident from every set of artifacts that it has."""
    work = [(i, s) for i in wanted for s in sets if i.paths(s)]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_judge, work, chunksize=4)


def _judge(work: tuple[Incident, str]) -> tuple[Judged, Diagnosis | None]:
    incident, artifacts = work
    os.nice(0)
    began = time.monotonic()
    try:
        run = open_run(*incident.paths(artifacts))
        found = diagnose(run, max_time_s=MAX_TIME_S)
    except TraindxError as error:
        took = time.monotonic() - began
        return Judged(incident.name, artifacts, f"unreadable: {error}", took), None
    took = time.monotonic() - began
    first = found.root_causes[0] if found.root_causes else None
    patch = next((r.patch for r in first.remedies if r.patch), None) if first else None
    judged = Judged(
        incident=incident.name,
        artifacts=artifacts,
        status=found.status.value,
        duration_s=took,
        named=_named(found),
        failed=tuple(f"{f.detector}: {f.error}" for f in found.failed),
        patch=patch,
    )
    return judged, found


def _named(found: Diagnosis) -> tuple[Named, ...]:
    """Return the causes as a reader meets them: root causes first, what follows from them last."""
    roots = {h.cause for h in found.root_causes}
    ranked = sorted(found.hypotheses, key=lambda h: h.cause in found.folded)
    return tuple(
        Named(
            cause=h.cause,
            confidence=round(h.confidence, 4),
            is_root=h.cause in roots,
            is_shown=any(f.shows == h.cause for f in h.findings),
            file=h.location.file if h.location else "",
            line=h.location.line if h.location else None,
            has_patch=any(r.patch for r in h.remedies),
        )
        for h in ranked
    )


def keep(judged: Iterable[tuple[Judged, Diagnosis | None]], half: str) -> list[Judged]:
    """Write each judgement as it comes, and return them all."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = []
    with (
        (KEPT / f"{half}.jsonl").open("w", encoding="utf-8") as short,
        (KEPT / f"{half}-findings.jsonl").open("w", encoding="utf-8") as long,
    ):
        for item, diagnosis in judged:
            made.append(item)
            print(json.dumps(asdict(item)), file=short, flush=True)
            if diagnosis is not None:
                print(json.dumps(_findings(item, diagnosis)), file=long)
    return made


def _findings(item: Judged, diagnosis: Diagnosis) -> dict[str, object]:
    """Return what the weights are fitted on: who claimed what, without the evidence."""
    findings = [
        {
            "detector": f.detector,
            "suggests": {c: s.value for c, s in f.suggests.items()},
            "against": {c: s.value for c, s in f.against.items()},
            "shows": f.shows,
            "is_symptom": f.is_symptom,
        }
        for f in diagnosis.findings
    ]
    folded = dict(diagnosis.folded)
    return {
        "incident": item.incident,
        "artifacts": item.artifacts,
        "findings": findings,
        "folded": folded,
    }


def read_kept(half: str) -> list[Judged]:
    """Return the judgements of an earlier run."""
    with (KEPT / f"{half}.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Judged(
            **{
                **row,
                "named": tuple(Named(**n) for n in row["named"]),
                "failed": tuple(row["failed"]),
            }
        )
        for row in rows
    ]
