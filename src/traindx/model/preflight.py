"""What is checked before a long job: frozen values with their JSON shape.

"Not judged" is an outcome of its own: nothing that could not be looked at counts as passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from traindx.model.findings import SCHEMA_VERSION, Diagnosis, Evidence, Severity


class Outcome(str, Enum):
    """How a check came out."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "not_judged"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist; `says` is what was seen, or why nothing could be said.

    `severity` and `fix` belong to a check that failed, `causes` names what of the diagnosis it
    stands for.
    """

    name: str
    title: str
    outcome: Outcome
    says: str
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | None = None
    fix: str = ""
    causes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape of the check."""
        return {
            "check": self.name,
            "title": self.title,
            "outcome": self.outcome.value,
            "says": self.says,
            "severity": None if self.severity is None else self.severity.value,
            "fix": self.fix,
            "causes": list(self.causes),
            "evidence": [_evidence_dict(e) for e in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Checklist:
    """All checks of one command, what was diagnosed on the way, and what it took."""

    command: tuple[str, ...]
    checks: tuple[Check, ...]
    diagnosis: Diagnosis | None = None
    warnings: tuple[str, ...] = ()
    redirected: tuple[str, ...] = ()
    steps: int = 0
    duration_s: float = 0.0
    is_interrupted: bool = False

    def of(self, outcome: Outcome) -> tuple[Check, ...]:
        """Return the checks that came out so, in order."""
        return tuple(c for c in self.checks if c.outcome is outcome)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Return what failed, the most severe first."""
        ranks = {c.name: -(c.severity.rank if c.severity else 0) for c in self.checks}
        return tuple(sorted(self.of(Outcome.FAILED), key=lambda c: ranks[c.name]))

    @property
    def verdict(self) -> str:
        """Return "ready", "fix first", or "unknown" where nothing could be looked at."""
        if self.failed:
            return "fix first"
        return "ready" if self.of(Outcome.PASSED) and self.steps else "unknown"

    @property
    def summary(self) -> str:
        """Return the verdict as a sentence."""
        if self.failed:
            first = self.failed[0]
            more = len(self.failed) - 1
            rest = f" ({more} more below)" if more else ""
            return f"Fix this first: {first.says}{rest}."
        if self.verdict == "unknown":
            why = next((c.says for c in self.checks if c.outcome is Outcome.OPEN), "nothing ran")
            return f"Not known: {why}."
        left, well = len(self.of(Outcome.OPEN)), len(self.of(Outcome.PASSED))
        rest = f", {left} not judged" if left else ""
        return f"Ready: {well} {'check' if well == 1 else 'checks'} passed{rest}."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape that scripts rely on."""
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict.replace(" ", "_"),
            "summary": self.summary,
            "command": list(self.command),
            "checks": [c.to_dict() for c in self.checks],
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
            "warnings": list(self.warnings),
            "redirected": list(self.redirected),
            "steps": self.steps,
            "is_interrupted": self.is_interrupted,
            "duration_s": round(self.duration_s, 3),
        }


def _evidence_dict(evidence: Evidence) -> dict[str, Any]:
    return {
        "says": evidence.says,
        "artifact": evidence.artifact,
        "locator": evidence.locator,
        "steps": list(evidence.steps) if evidence.steps else None,
        "values": dict(evidence.values),
    }
