"""The findings that point at source code as SARIF 2.1.0, for editors and code hosts."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from traindx import __version__
from traindx.causes import all_causes
from traindx.model.findings import Diagnosis, Finding, Hypothesis, Location, Severity, Strength
from traindx.model.former_names import former_name
from traindx.model.run import Run
from traindx.registry import Detector, detectors
from traindx.report import words
from traindx.report.json import strict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
}
_BY_STRENGTH = {
    Strength.STRONG: Severity.MEDIUM,
    Strength.MODERATE: Severity.MEDIUM,
    Strength.WEAK: Severity.LOW,
}


def render(run: Run, diagnosis: Diagnosis) -> str:
    """Return the findings that have a source location; without one there is no place to show it."""
    located = [f for f in diagnosis.findings if f.location is not None]
    names = list(dict.fromkeys(_rule_id(f) for f in located))
    known = {d.name: d for d in detectors().items} if located else {}
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "traindx",
                        "semanticVersion": __version__,
                        "rules": [_rule(name, known.get(name)) for name in names],
                    }
                },
                "columnKind": "utf16CodeUnits",
                "invocations": [_invocation(diagnosis)],
                "results": [_result(diagnosis, f, names.index(_rule_id(f))) for f in located],
                **_tested(diagnosis),
            }
        ],
    }
    return json.dumps(strict(log), indent=2, allow_nan=False)


def _rule_id(finding: Finding) -> str:
    return words.clean(finding.detector) or "finding"


def _rule(name: str, detector: Detector | None) -> dict[str, Any]:
    title = detector.title if detector and detector.title else name.replace("-", " ")
    former = former_name(name)
    doc = inspect.cleandoc(detector.doc) if detector and detector.doc else title
    return {
        "id": name,
        **({"deprecatedIds": [former]} if former else {}),
        "name": "".join(part.capitalize() for part in re.split(r"\W+", name)) or name,
        "shortDescription": {"text": f"{title.rstrip('.')}."},
        "help": {"text": doc, "markdown": doc},
    }


def _invocation(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "executionSuccessful": True,
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": {"text": f"{words.clean(f.detector)} crashed: {words.clean(f.error)}"},
            }
            for f in diagnosis.failed
        ],
    }


def _tested(diagnosis: Diagnosis) -> dict[str, Any]:
    """Experiments have no place in the format, so they are a property of the run."""
    told = [
        {
            "cause": words.clean(e.cause),
            "change": words.clean(e.change),
            "verdict": e.verdict.value,
            "reason": words.clean(e.reason),
        }
        for e in diagnosis.experiments
    ]
    return {"properties": {"experiments": told}} if told else {}


def _result(diagnosis: Diagnosis, finding: Finding, rule_index: int) -> dict[str, Any]:
    hypothesis = _hypothesis_on(diagnosis, finding)
    location = finding.location
    assert location is not None
    return {
        "ruleId": _rule_id(finding),
        "ruleIndex": rule_index,
        "level": LEVELS[_severity(finding, hypothesis)],
        "message": {"text": _message(finding, hypothesis)},
        "locations": [{"physicalLocation": _physical(location)}],
        "partialFingerprints": {"traindx/v1": _fingerprint(finding, location)},
        "properties": {
            "strength": finding.strength.value,
            "causes": sorted({*finding.suggests, *([finding.shows] if finding.shows else [])}),
            "confidence": round(hypothesis.confidence, 3) if hypothesis else None,
            "confirmed": hypothesis.confirmed if hypothesis else False,
        },
    }


def _hypothesis_on(diagnosis: Diagnosis, finding: Finding) -> Hypothesis | None:
    resting = (h for h in diagnosis.hypotheses if any(f is finding for f in h.findings))
    return max(resting, key=lambda h: h.confidence, default=None)


def _severity(finding: Finding, hypothesis: Hypothesis | None) -> Severity:
    if hypothesis is not None:
        return hypothesis.severity
    cause = all_causes().get(finding.shows or "")
    return cause.severity if cause else _BY_STRENGTH[finding.strength]


def _message(finding: Finding, hypothesis: Hypothesis | None) -> str:
    claim = words.clean(finding.claim)
    if hypothesis is None or not hypothesis.remedies:
        return claim or _rule_id(finding)
    return f"{claim.rstrip('.')}. Fix: {words.clean(hypothesis.remedies[0].change)}"


def _physical(location: Location) -> dict[str, Any]:
    path = location.file.replace("\\", "/")
    encoded = quote(path.encode("utf-8", "replace"), safe="/:")
    place: dict[str, Any] = {"uri": encoded, "uriBaseId": "%SRCROOT%"}
    if PurePosixPath(path).is_absolute():
        place = {"uri": f"file://{encoded}"}
    elif re.match(r"[A-Za-z]:/", path):
        place = {"uri": f"file:///{encoded}"}
    start = max(location.line, 1)
    return {
        "artifactLocation": place,
        "region": {"startLine": start, "endLine": max(location.end_line, start)},
    }


def _fingerprint(finding: Finding, location: Location) -> str:
    """A result keeps its identity when lines above it move."""
    parts = "\0".join((finding.detector, location.file, re.sub(r"\d+", "#", finding.claim)))
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:32]
