"""What is claimed about a run, and on what grounds: frozen values with a JSON round trip.

The shape of `Diagnosis.to_dict()` is a contract with scripts, editors and assistants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from traindx.model.former_names import former_name, present_name
from traindx.model.probes import Probing
from traindx.model.recording import Place, Process
from traindx.model.run import Artifact, Event, Series, Setting

SCHEMA_VERSION = "1"
EXPERIMENT = "experiment"  # stands for the detector in findings that an experiment made
LISTED_FROM = 0.70
SHOWN_FROM = 0.90


class Strength(str, Enum):
    """How far a finding moves belief, apart from every other finding."""

    WEAK = "weak"
    MODERATE = "moderate"
    STRONG = "strong"

    @property
    def rank(self) -> int:
        return list(Strength).index(self)


class Severity(str, Enum):
    """How much a cause costs the user."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Status(str, Enum):
    """The outcome of a diagnosis in one word."""

    COMPLETE = "diagnosis_complete"
    PARTIAL = "partial_diagnosis"
    HEALTHY = "no_problem_found"
    INSUFFICIENT = "insufficient_evidence"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed fact and the place where anyone can look it up."""

    says: str
    artifact: str
    locator: str = ""
    steps: tuple[float, float] | None = None
    values: Mapping[str, float] = field(default_factory=dict)


def cite(
    series: Series, says: str, start: int, end: int | None = None, /, **values: float
) -> Evidence:
    """Point at one point of a series, or at the stretch between two."""
    start %= len(series)
    end = start if end is None else end % len(series)
    locator = (
        series.where(start) if start == end else f"{series.where(start)} to {_tail(series, end)}"
    )
    span = (float(series.steps[start]), float(series.steps[end]))
    return Evidence(says, series.origin.artifact, locator, span, values)


def _tail(series: Series, index: int) -> str:
    return str(int(series.places[index])) if len(series.places) else str(index + 1)


def cite_setting(setting: Setting, says: str = "") -> Evidence:
    """Point at a configured value."""
    text = says or f"{setting.key} = {setting.value}"
    return Evidence(text, setting.artifact, setting.locator or setting.key)


def cite_event(event: Event, says: str = "") -> Evidence:
    """Point at a logged event."""
    span = None if event.step is None else (event.step, event.step)
    return Evidence(says or event.text, event.artifact, event.locator, span)


def cite_source(file: str, line: int, says: str) -> Evidence:
    """Point at a line of the user's source."""
    return Evidence(says, file, f"line {line}")


def cite_record(process: Process, line: int, says: str, /, **values: float) -> Evidence:
    """Point at a record of a training process; `step` among the values is its step."""
    step = values.pop("step", None)
    span = None if step is None else (step, step)
    return Evidence(says, process.path, f"line {line}", span, values)


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source code."""

    file: str
    line: int
    end_line: int


def at(place: Place | None) -> Location | None:
    """Return the location that a recorded place stands for."""
    return None if place is None else Location(place.file, place.line, place.line)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector claims.

    `suggests` says how strongly the claim speaks for each cause, `against` how strongly it speaks
    against one. `shows` names a cause that the evidence shows directly: the line of code, the value
    itself. `is_symptom` marks something the user suffers from and wants explained; findings that
    are not symptoms only shift belief between causes. `onset` is the step at which it began.
    """

    claim: str
    strength: Strength
    evidence: tuple[Evidence, ...]
    suggests: Mapping[str, Strength] = field(default_factory=dict)
    against: Mapping[str, Strength] = field(default_factory=dict)
    shows: str | None = None
    is_symptom: bool = False
    onset: float | None = None
    location: Location | None = None
    patch: str | None = None
    detector: str = ""

    def named(self, detector: str) -> Finding:
        return replace(self, detector=detector)

    def about(self, cause: str) -> Finding:
        """Return the finding with a cause where it left open which it speaks for."""
        if self.shows != "" and "" not in self.suggests:
            return self
        suggests = {named or cause: strength for named, strength in self.suggests.items()}
        return replace(self, shows=cause if self.shows == "" else self.shows, suggests=suggests)


Findings = Iterator[Finding]  # what a rule returns


def finding(
    claim: str,
    cause: str | Mapping[str, Strength],
    *evidence: Evidence,
    strength: Strength = Strength.STRONG,
    shows: str | None = None,
    against: Mapping[str, Strength] | None = None,
    is_symptom: bool = True,
    onset: float | None = None,
    place: Place | Location | None = None,
    patch: str | None = None,
) -> Finding:
    """Return what a recording or a curve shows: a cause, or the causes that it suggests.

    A cause by its name is shown, the causes of a mapping are suggested. Unless said otherwise it
    began where the first evidence begins.
    """
    begun = evidence[0].steps[0] if evidence and evidence[0].steps else None
    return Finding(
        claim=claim,
        strength=strength,
        evidence=evidence,
        suggests={} if isinstance(cause, str) else cause,
        against=against or {},
        shows=cause if isinstance(cause, str) else shows,
        is_symptom=is_symptom,
        onset=begun if onset is None else float(onset),
        location=at(place) if isinstance(place, Place) else place,
        patch=patch,
    )


def suggested(strong: str = "", moderate: str = "", weak: str = "") -> dict[str, Strength]:
    """Return causes, several with blanks between, by how strongly something speaks for them."""
    found = dict.fromkeys(strong.split(), Strength.STRONG)
    found |= dict.fromkeys(moderate.split(), Strength.MODERATE)
    return found | dict.fromkeys(weak.split(), Strength.WEAK)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The smallest change that removes a cause, and how to tell that it did."""

    change: str
    expected_effect: str
    verify: str
    if_it_fails: str
    patch: str | None = None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause with its confidence and the findings for and against it."""

    cause: str
    confidence: float
    issue: str = ""
    severity: Severity = Severity.MEDIUM
    confirmed: bool = False
    findings: tuple[Finding, ...] = ()
    opposing: tuple[Finding, ...] = ()
    consequences: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    specialist: str = ""
    confirm_by: str = ""
    place: Location | None = None  # of the setting that the cause is about

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence in order of time, each fact once."""
        seen: dict[tuple[str, str, str], Evidence] = {}
        for finding in sorted(self.findings, key=_direct_first):
            for item in finding.evidence:
                seen.setdefault((item.says, item.artifact, item.locator), item)
        return tuple(seen.values())

    @property
    def counter_evidence(self) -> tuple[Evidence, ...]:
        return tuple(e for f in self.opposing for e in f.evidence)

    @property
    def location(self) -> Location | None:
        """The place of what shows the cause, of the setting it is about, or of what fits it."""
        placed = [f for f in self.findings if f.location]
        shown = [f for f in placed if f.shows == self.cause]
        if not shown and self.place is not None:
            return self.place
        best = min(shown or placed, key=lambda f: f.patch is None, default=None)
        return best.location if best is not None else None

    @property
    def onset(self) -> float | None:
        onsets = [f.onset for f in self.findings if f.onset is not None]
        return min(onsets) if onsets else None


def _direct_first(finding: Finding) -> tuple[bool, float]:
    return finding.shows is None, finding.onset if finding.onset is not None else float("inf")


class Verdict(str, Enum):
    """What an experiment says about the cause it tested."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Trial:
    """One rerun of the user's command: its loss, and whether it shows the symptom."""

    is_changed: bool
    seed: int
    steps: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    symptoms: tuple[str, ...] = ()  # what it still suffers from; empty: the symptom is absent
    ending: str = ""  # "ended", "stopped after 200 steps", "RuntimeError: …"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A test of a cause: the user's command with one change, beside the command as it is.

    `on_top_of` names the causes whose remedies were in place in both, `applied` counts how often
    the change made a difference while the changed command ran.
    """

    cause: str
    change: str
    verdict: Verdict
    reason: str
    trials: tuple[Trial, ...] = ()
    patch: str | None = None
    on_top_of: tuple[str, ...] = ()
    applied: int | None = None
    duration_s: float = 0.0
    remedy: str = ""  # the change as advice, where it carries a value


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that could not be made, and what would allow it."""

    detector: str
    needs: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A check that crashed; it says nothing about the run."""

    detector: str
    error: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Ranked hypotheses, what led to them, and what could not be checked."""

    status: Status
    summary: str
    hypotheses: tuple[Hypothesis, ...] = ()
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Failed, ...] = ()
    questions: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    analysis_artifacts: Mapping[str, str] = field(default_factory=dict)
    duration_s: float = 0.0
    folded: Mapping[str, str] = field(default_factory=dict)
    asides: frozenset[str] = frozenset()  # causes that cannot make what the run suffers from
    experiments: tuple[Experiment, ...] = ()
    probing: Probing | None = None
    judged: tuple[str, ...] = ()  # what could be shown to be in order

    @property
    def root_causes(self) -> tuple[Hypothesis, ...]:
        """Return the hypotheses that reach the bar and are no consequence of another one."""
        listed = (h for h in self.hypotheses if h.confidence >= LISTED_FROM)
        return tuple(h for h in listed if h.cause not in {*self.folded, *self.asides})

    @property
    def quick_fixes(self) -> tuple[str, ...]:
        fixes: dict[str, None] = {}
        for hypothesis in self.root_causes:
            for remedy in hypothesis.remedies[:2]:
                fixes.setdefault(remedy.change)
        return tuple(fixes)

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """Return the findings that no listed cause rests on.

        An experiment that only clears a cause is no news beside the experiment itself, unless the
        fault is there all the same.
        """
        used = {id(f) for h in self.root_causes for f in h.findings}
        there = {f.shows for f in self.findings}
        return tuple(
            f
            for f in self.findings
            if id(f) not in used and (f.detector != EXPERIMENT or there & f.against.keys())
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape that scripts and assistants rely on."""
        return {
            "schema_version": SCHEMA_VERSION,
            "status": self.status.value,
            "summary": self.summary,
            "root_causes": [_cause_dict(h) for h in self.root_causes],
            "quick_fixes": list(self.quick_fixes),
            "hypotheses": [self._hypothesis_dict(h) for h in self.hypotheses],
            "findings": [_finding_dict(f) for f in self.findings],
            "experiments": [_experiment_dict(e) for e in self.experiments],
            **(self.probing.to_dict() if self.probing is not None else {}),
            "judged": list(self.judged),
            "checked": list(self.checked),
            "skipped": [
                {"detector": s.detector, "needs": list(s.needs), "how": s.how} for s in self.skipped
            ],
            "failed": [{"detector": f.detector, "error": f.error} for f in self.failed],
            "questions": list(self.questions),
            "artifacts": [
                {"path": a.path, "reader": a.reader, "warnings": list(a.warnings)}
                for a in self.artifacts
            ],
            "analysis_artifacts": dict(self.analysis_artifacts),
            "duration_s": round(self.duration_s, 3),
        }

    def _hypothesis_dict(self, hypothesis: Hypothesis) -> dict[str, Any]:
        """A hypothesis refers to its findings by their position, so that each is written once."""
        position = {id(f): i for i, f in enumerate(self.findings)}
        return {
            "cause": hypothesis.cause,
            "confidence": round(hypothesis.confidence, 3),
            "issue": hypothesis.issue,
            "severity": hypothesis.severity.value,
            "confirmed": hypothesis.confirmed,
            "findings": [position[id(f)] for f in hypothesis.findings],
            "against": [position[id(f)] for f in hypothesis.opposing],
            "consequences": list(hypothesis.consequences),
            "consequence_of": self.folded.get(hypothesis.cause),
            "is_remark": hypothesis.cause in self.asides,
            "remedies": [_remedy_dict(r) for r in hypothesis.remedies],
            "specialist": hypothesis.specialist,
            "confirm_by": hypothesis.confirm_by,
            "place": _location_dict(hypothesis.place),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Diagnosis:
        """Rebuild a diagnosis from what `to_dict` returned."""
        findings = tuple(_finding_from(f) for f in data["findings"])
        hypotheses = tuple(_hypothesis_from(h, findings) for h in data["hypotheses"])
        return cls(
            status=Status(data["status"]),
            summary=data["summary"],
            hypotheses=hypotheses,
            findings=findings,
            checked=tuple(data.get("checked", ())),
            skipped=tuple(
                Skipped(s["detector"], tuple(s["needs"]), s["how"]) for s in data["skipped"]
            ),
            failed=tuple(Failed(f["detector"], f["error"]) for f in data["failed"]),
            questions=tuple(data["questions"]),
            artifacts=tuple(
                Artifact(a["path"], a["reader"], tuple(a["warnings"])) for a in data["artifacts"]
            ),
            analysis_artifacts=dict(data["analysis_artifacts"]),
            duration_s=data["duration_s"],
            experiments=tuple(_experiment_from(e) for e in data.get("experiments", ())),
            folded={
                h["cause"]: h["consequence_of"] for h in data["hypotheses"] if h["consequence_of"]
            },
            asides=frozenset(h["cause"] for h in data["hypotheses"] if h.get("is_remark")),
            probing=Probing.from_dict(data),
            judged=tuple(data.get("judged", ())),
        )


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinity; they are written as words."""
    return float(value) if abs(value) < float("inf") else str(float(value))


def _evidence_dict(evidence: Evidence) -> dict[str, Any]:
    return {
        "says": evidence.says,
        "artifact": evidence.artifact,
        "locator": evidence.locator,
        "steps": [_number(s) for s in evidence.steps] if evidence.steps else None,
        "values": {k: _number(v) for k, v in evidence.values.items()},
    }


def _evidence_from(data: Mapping[str, Any]) -> Evidence:
    steps = data["steps"]
    return Evidence(
        data["says"],
        data["artifact"],
        data["locator"],
        (float(steps[0]), float(steps[1])) if steps else None,
        {k: float(v) for k, v in data["values"].items()},
    )


def _location_dict(location: Location | None) -> dict[str, Any] | None:
    if location is None:
        return None
    return {"file": location.file, "line": location.line, "end_line": location.end_line}


def _finding_dict(finding: Finding) -> dict[str, Any]:
    former = former_name(finding.detector)
    return {
        "detector": finding.detector,
        **({"also_known_as": former} if former else {}),
        "claim": finding.claim,
        "strength": finding.strength.value,
        "evidence": [_evidence_dict(e) for e in finding.evidence],
        "suggests": {c: s.value for c, s in finding.suggests.items()},
        "against": {c: s.value for c, s in finding.against.items()},
        "shows": finding.shows,
        "is_symptom": finding.is_symptom,
        "onset": None if finding.onset is None else _number(finding.onset),
        "location": _location_dict(finding.location),
        "patch": finding.patch,
    }


def _finding_from(data: Mapping[str, Any]) -> Finding:
    location = data["location"]
    return Finding(
        claim=data["claim"],
        strength=Strength(data["strength"]),
        evidence=tuple(_evidence_from(e) for e in data["evidence"]),
        suggests={c: Strength(s) for c, s in data["suggests"].items()},
        against={c: Strength(s) for c, s in data["against"].items()},
        shows=data["shows"],
        is_symptom=data["is_symptom"],
        onset=None if data["onset"] is None else float(data["onset"]),
        location=Location(**location) if location else None,
        patch=data["patch"],
        detector=present_name(data["detector"]),
    )


def _experiment_dict(experiment: Experiment) -> dict[str, Any]:
    return {
        "cause": experiment.cause,
        "change": experiment.change,
        "verdict": experiment.verdict.value,
        "reason": experiment.reason,
        "trials": [_trial_dict(t) for t in experiment.trials],
        "patch": experiment.patch,
        "on_top_of": list(experiment.on_top_of),
        "applied": experiment.applied,
        "duration_s": round(experiment.duration_s, 3),
    }


def _trial_dict(trial: Trial) -> dict[str, Any]:
    return {
        "is_changed": trial.is_changed,
        "seed": trial.seed,
        "steps": [_number(s) for s in trial.steps],
        "losses": [_number(v) for v in trial.losses],
        "symptoms": list(trial.symptoms),
        "ending": trial.ending,
    }


def _experiment_from(data: Mapping[str, Any]) -> Experiment:
    return Experiment(
        cause=data["cause"],
        change=data["change"],
        verdict=Verdict(data["verdict"]),
        reason=data["reason"],
        trials=tuple(_trial_from(t) for t in data["trials"]),
        patch=data["patch"],
        on_top_of=tuple(data["on_top_of"]),
        applied=data["applied"],
        duration_s=data["duration_s"],
    )


def _trial_from(data: Mapping[str, Any]) -> Trial:
    return Trial(
        is_changed=data["is_changed"],
        seed=data["seed"],
        steps=tuple(float(s) for s in data["steps"]),
        losses=tuple(float(v) for v in data["losses"]),
        symptoms=tuple(data["symptoms"]),
        ending=data["ending"],
    )


def _remedy_dict(remedy: Remedy) -> dict[str, Any]:
    return {
        "change": remedy.change,
        "expected_effect": remedy.expected_effect,
        "verify": remedy.verify,
        "if_it_fails": remedy.if_it_fails,
        "patch": remedy.patch,
    }


def _cause_dict(hypothesis: Hypothesis) -> dict[str, Any]:
    return {
        "cause": hypothesis.cause,
        "issue": hypothesis.issue,
        "severity": hypothesis.severity.value,
        "confidence": round(hypothesis.confidence, 3),
        "confirmed": hypothesis.confirmed,
        "evidence": [_evidence_dict(e) for e in hypothesis.evidence],
        "against": [_evidence_dict(e) for e in hypothesis.counter_evidence],
        "consequences": list(hypothesis.consequences),
        "location": _location_dict(hypothesis.location),
        "fix": hypothesis.remedies[0].change if hypothesis.remedies else "",
        "remedies": [_remedy_dict(r) for r in hypothesis.remedies],
        "specialist": hypothesis.specialist,
        "confirm_by": hypothesis.confirm_by,
    }


def _hypothesis_from(data: Mapping[str, Any], findings: tuple[Finding, ...]) -> Hypothesis:
    return Hypothesis(
        cause=data["cause"],
        confidence=data["confidence"],
        issue=data["issue"],
        severity=Severity(data["severity"]),
        confirmed=data["confirmed"],
        findings=tuple(findings[i] for i in data["findings"]),
        opposing=tuple(findings[i] for i in data["against"]),
        consequences=tuple(data["consequences"]),
        remedies=tuple(Remedy(**r) for r in data["remedies"]),
        specialist=data["specialist"],
        confirm_by=data["confirm_by"],
        place=Location(**data["place"]) if data.get("place") else None,
    )
