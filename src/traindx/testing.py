"""Whole cases with their expected diagnosis: for this project and for plugin authors.

An incident is a folder with `incident.json` and `artifacts/`. `examine` diagnoses the artifacts
and returns what differs from what the incident expects, as sentences; no difference, empty list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx import api
from traindx.model.findings import Diagnosis


@dataclass(frozen=True, slots=True)
class Incident:
    """A run with a known outcome."""

    name: str
    what: str
    artifacts: Path
    symptoms: tuple[str, ...]
    is_healthy: bool
    expect: dict[str, Any]


def load_incidents(folder: Path) -> list[Incident]:
    """Return every incident below a folder, in order of name."""
    return [load_incident(p.parent) for p in sorted(folder.glob("*/incident.json"))]


def load_incident(folder: Path) -> Incident:
    """Return the incident that a folder holds."""
    data = json.loads((folder / "incident.json").read_text())
    return Incident(
        name=folder.name,
        what=data["what"],
        artifacts=folder / "artifacts",
        symptoms=tuple(data.get("symptoms", ())),
        is_healthy=data["is_healthy"],
        expect=data["expect"],
    )


def examine(incident: Incident) -> list[str]:
    """Diagnose an incident and return what is not as expected."""
    run = api.open_run(incident.artifacts, symptoms=incident.symptoms)
    return list(_differences(api.diagnose(run), incident))


def _differences(diagnosis: Diagnosis, incident: Incident) -> Iterator[str]:
    expect = incident.expect
    roots = [h.cause for h in diagnosis.root_causes]
    accepted = expect.get("root_causes", [])
    if diagnosis.failed:
        yield f"detectors failed: {[f.detector for f in diagnosis.failed]}"
    if incident.is_healthy and roots:
        yield f"healthy, yet accused of {roots}"
    if accepted and (not roots or roots[0] not in accepted) and expect.get("min_confidence"):
        yield f"expected {accepted}, found {roots or 'nothing'}"
    if roots and accepted and roots[0] not in accepted:
        yield f"accused of {roots[0]}, acceptable are {accepted}"
    statuses = expect.get("statuses")
    if statuses and diagnosis.status.value not in statuses:
        yield f"status {diagnosis.status.value}, expected one of {statuses}"
    yield from _confidence_differences(diagnosis, expect)
    named = {h.cause for h in diagnosis.hypotheses}
    missing = set(expect.get("hypotheses_include") or ()) - named
    if missing:
        yield f"never considered {sorted(missing)}"
    asked = " ".join(diagnosis.questions).lower()
    for word in expect.get("questions_mention") or ():
        if word.lower() not in asked:
            yield f"no question mentions {word!r}"


def _confidence_differences(diagnosis: Diagnosis, expect: dict[str, Any]) -> Iterator[str]:
    best = max((h.confidence for h in diagnosis.hypotheses), default=0.0)
    low, high = expect.get("min_confidence"), expect.get("max_confidence")
    if low is not None and best < low:
        yield f"confidence {best:.2f} is below {low}"
    if high is not None and best > high:
        yield f"confidence {best:.2f} is above {high}"
