"""What an experiment came to, in words and as a finding. It states no confidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from traindx.model.findings import (
    EXPERIMENT,
    Diagnosis,
    Evidence,
    Experiment,
    Finding,
    Strength,
    Trial,
    Verdict,
)

AS_IT_IS, CHANGED = "as it is", "changed"
START, TAIL = 50, 10  # one part in so many of a curve says where it starts and where it ends
SYMPTOMS_SHOWN = 2
_ORDINARY = ("ended", "stopped")  # endings that are no news


@dataclass(frozen=True, slots=True)
class Arm:
    """The reruns on one side of an experiment; `has_aim` where there is a symptom to lose."""

    label: str
    trials: tuple[Trial, ...]
    has_aim: bool = True

    @property
    def first(self) -> float:
        """Return the loss at the start, over all seeds."""
        return _middle(_level(t.losses[: max(1, len(t.losses) // START)]) for t in self.trials)

    @property
    def last(self) -> float:
        """Return the loss at the end, over all seeds; NaN where it ends as no number."""
        return _middle(_level(t.losses[-max(1, len(t.losses) // TAIL) :]) for t in self.trials)

    @property
    def steps(self) -> int:
        """Return over how many steps the longest rerun was seen."""
        spans = [int(t.steps[-1] - t.steps[0]) + 1 for t in self.trials if t.steps]
        return max(spans, default=0)

    @property
    def symptoms(self) -> tuple[str, ...]:
        """Return what any rerun suffers from, each once."""
        return tuple(dict.fromkeys(s for t in self.trials for s in t.symptoms))

    @property
    def endings(self) -> tuple[str, ...]:
        """Return how the reruns ended where that is news, each once."""
        told = (t.ending for t in self.trials if t.ending)
        return tuple(dict.fromkeys(e for e in told if not e.startswith(_ORDINARY)))


def arms_of(experiment: Experiment) -> tuple[Arm, Arm]:
    """Return the reruns of a command as it is, and those with the change."""
    control = tuple(t for t in experiment.trials if not t.is_changed)
    changed = tuple(t for t in experiment.trials if t.is_changed)
    has_aim = any(t.symptoms for t in experiment.trials)
    return Arm(AS_IT_IS, control, has_aim), Arm(CHANGED, changed, has_aim)


def course_of(arm: Arm) -> str:
    """Return what the reruns of one side did, in a phrase."""
    if not arm.trials:
        return "not rerun"
    if any(t.losses for t in arm.trials):
        steps = f" in {counted(arm.steps, 'step')}" if arm.steps else ""
        told = [f"loss {number(arm.first)} → {number(arm.last)}{steps}"]
    else:
        told = ["no loss was recorded"]
    if arm.symptoms or (arm.has_aim and any(t.losses for t in arm.trials)):
        told.append(_symptoms(arm))
    told += arm.endings[:1]
    return f"{', '.join(told)} ({counted(len({t.seed for t in arm.trials}), 'seed')})"


def _symptoms(arm: Arm) -> str:
    if not arm.symptoms:
        return "symptom absent"
    ill = sum(bool(t.symptoms) for t in arm.trials)
    named = "; ".join(_inside(s) for s in arm.symptoms[:SYMPTOMS_SHOWN])
    return named if ill == len(arm.trials) else f"in {ill} of {len(arm.trials)} reruns: {named}"


def _inside(sentence: str) -> str:
    """A sentence becomes part of another one; a name in capitals stays as it is."""
    sentence = sentence.rstrip(".")
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def seeds_of(trials: Sequence[Trial]) -> str:
    """Return which seeds were used: seed 0, seeds 0-2, seeds 0, 7."""
    seeds = sorted({t.seed for t in trials})
    if not seeds:
        return "no seed"
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]}-{seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def finding_of(experiment: Experiment, diagnosis: Diagnosis) -> Finding | None:
    """Return what an experiment claims of its cause, or None where it decided nothing."""
    if experiment.verdict is Verdict.UNDECIDED:
        return None
    is_confirmed = experiment.verdict is Verdict.CONFIRMED
    reason = experiment.reason.rstrip(".")
    claim = f"Confirmed by experiment: {reason}"
    if not is_confirmed:
        is_there = any(f.shows == experiment.cause for f in diagnosis.findings)
        but = "there, but not shown to ail this run" if is_there else "not what ails this run"
        claim = f"{experiment.cause} is {but}: {reason}"
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(evidence_of(experiment),),
        shows=experiment.cause if is_confirmed else None,
        against={} if is_confirmed else {experiment.cause: Strength.STRONG},
        detector=EXPERIMENT,
    )


def evidence_of(experiment: Experiment) -> Evidence:
    """Return the outcome of an experiment as a fact that can be looked up among its reruns."""
    control, changed = arms_of(experiment)
    told = {
        "control_first": control.first,
        "control_last": control.last,
        "changed_first": changed.first,
        "changed_last": changed.last,
    }
    steps = counted(max(control.steps, changed.steps), "step")
    return Evidence(
        says=f"{AS_IT_IS}: {course_of(control)}; {CHANGED}: {course_of(changed)}",
        artifact=f"experiment: {experiment.change}",
        locator=f"control and changed, {seeds_of(experiment.trials)}, {steps}",
        values=told if any(t.losses for t in experiment.trials) else {},
    )


def removed_by(experiment: Experiment) -> frozenset[str]:
    """Return the symptoms that the change takes away: in a control, in no changed rerun."""
    control, changed = arms_of(experiment)
    return frozenset(control.symptoms) - frozenset(changed.symptoms)


def _level(part: Sequence[float]) -> float:
    if any(math.isnan(v) for v in part):
        return math.nan
    return median(part) if part else math.nan


def _middle(levels: Iterable[float]) -> float:
    found = list(levels)
    if not found or any(math.isnan(v) for v in found):
        return math.nan
    return median(found)


def number(value: float) -> str:
    """Return a loss with the digits that tell two of them apart."""
    if math.isnan(value):
        return "NaN"
    return f"{value:.4g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 seed, 2 seeds."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
