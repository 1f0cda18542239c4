"""Control against changed: is the symptom gone, does it learn, and what does that say?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from traindx.experiments.changes import Change
from traindx.experiments.verification.learning_curve import (
    Course,
    course_of,
    has_lost_accuracy,
    is_better,
    is_worse,
)
from traindx.experiments.verification.observed_rerun import Observation
from traindx.experiments.verification.symptoms import Symptom, is_present, present
from traindx.model.findings import Experiment, Verdict

EARLY = 0.8  # of the control's steps; a run that ended before cannot be compared
CHANGES_LOSS = frozenset({"raw-loss-input", "target-shape", "batch-size"})
STANDS = "The fault is there all the same; these reruns do not show whether it is what ails the run"
PAST = 5  # steps beyond the one at which the control failed


class Harm(Enum):
    """Where a cause does its harm, and so what has to be better without it."""

    LEARNING = "learning"  # the loss must fall further than the control's
    FINDING = "finding"  # memory, time, a validation metric: the finding must go, learning stay


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What an experiment asks: whether this change removes these symptoms."""

    cause: str
    change: Change
    symptoms: tuple[Symptom, ...]
    harm: Harm = Harm.LEARNING
    on_top_of: tuple[str, ...] = ()
    is_shown: bool = False  # the source or the run itself shows the cause directly


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentAnswer:
    """An experiment, and whether its change cleared its own symptom without curing the run."""

    experiment: Experiment
    has_cleared: bool = False
    is_without_effect: bool = False  # the fault is there, and its remedy changed nothing
    reproduced: tuple[Symptom, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return self.experiment.verdict


@dataclass(frozen=True, slots=True)
class _Ruling:
    verdict: Verdict
    reason: str
    has_cleared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A control and the changed rerun of the same seed, over the steps that both have."""

    control: Observation
    changed: Observation
    before: Course
    after: Course
    is_same_loss: bool | None = None  # None: a patch may have changed how it is defined

    @property
    def is_better(self) -> bool:
        if not self.is_same_loss and self._has_lost_accuracy():
            return False
        return is_better(self.after, self.before, is_same=self.is_same_loss)

    @property
    def is_worse(self) -> bool:
        return is_worse(self.after, self.before, is_same=self.is_same_loss)

    def _has_lost_accuracy(self) -> bool:
        return has_lost_accuracy(self.changed.run, self.control.run)

    @property
    def is_cut_short(self) -> bool:
        """Tell whether the changed rerun ended by its limit before it could show anything."""
        has_stopped = self.changed.rerun.stopped == "time"
        return has_stopped and self.changed.steps < EARLY * self.control.steps

    @property
    def has_got_past(self) -> bool:
        """Tell whether the changed rerun went on where the control had failed."""
        changed = self.changed
        if changed.crash is not None or changed.is_broken:
            return False
        has_ended = changed.rerun.exit_code == 0 and not changed.rerun.stopped
        further = changed.steps > self.control.steps
        return further and (has_ended or changed.steps >= self.control.steps + PAST)


def compare(
    question: Question, controls: Sequence[Observation], changed: Sequence[Observation]
) -> ExperimentAnswer:
    """Return what reruns with a change, beside reruns as they were, say about a cause."""
    reproduced = tuple(
        s for s in question.symptoms if controls and all(is_present(s, c) for c in controls)
    )
    applied = _applied(question.change, changed)
    ruling = _rule(question, reproduced, _pairs(question.change, controls, changed), applied)
    is_without_effect = question.is_shown and ruling.verdict is Verdict.REFUTED
    if is_without_effect:  # what stands in the source or was seen to happen is no opinion
        ruling = _undecided(f"{ruling.reason}. {STANDS}")
    trials = (
        *(c.trial(_told(present(reproduced, c)), is_changed=False) for c in controls),
        *(c.trial(_told(present(reproduced, c)), is_changed=True) for c in changed),
    )
    experiment = Experiment(
        cause=question.cause,
        change=question.change.says,
        verdict=ruling.verdict,
        reason=ruling.reason,
        trials=trials,
        patch=question.change.patch,
        on_top_of=question.on_top_of,
        applied=applied,
        remedy=question.change.remedy,
        duration_s=sum(o.rerun.duration_s for o in changed),
    )
    return ExperimentAnswer(experiment, ruling.has_cleared, is_without_effect, reproduced)


def _told(symptoms: Sequence[Symptom]) -> tuple[str, ...]:
    return tuple(s.says for s in symptoms)


def _keeps_loss(change: Change) -> bool | None:
    names = {i.name for i in change.interventions}
    return None if change.patch or names & CHANGES_LOSS else True


def _pairs(
    change: Change, controls: Sequence[Observation], changed: Sequence[Observation]
) -> list[_Pair]:
    by_seed = {c.rerun.seed: c for c in controls}
    pairs = []
    for seen in changed:
        control = by_seed.get(seen.rerun.seed, controls[0] if controls else None)
        if control is None:
            continue
        before, after = control.course, seen.course
        if before.is_known and after.is_known:  # the longer one would have fallen further
            last = min(float(before.steps[-1]), float(after.steps[-1]))
            before, after = course_of(control.run, last), course_of(seen.run, last)
        pairs.append(_Pair(control, seen, before, after, _keeps_loss(change)))
    return pairs


def _applied(change: Change, changed: Sequence[Observation]) -> int | None:
    """Return how often the change made a difference; None where that is not counted."""
    if change.patch or not change.interventions or not changed:
        return None
    names = {i.name for i in change.interventions}
    counts = [[o.rerun.applied.get(n) for n in names] for o in changed]
    if any(count is None for row in counts for count in row):
        return None
    return max(sum(count or 0 for count in row) for row in counts)


def _rule(
    question: Question, reproduced: Sequence[Symptom], pairs: Sequence[_Pair], applied: int | None
) -> _Ruling:
    if not pairs:
        return _undecided("it was not rerun")
    if question.symptoms and not reproduced:
        return _undecided(f"the rerun as it is does not show it: {_list(question.symptoms)}")
    stays = [present(reproduced, p.changed) for p in pairs]
    if applied == 0:
        return _rule_idle(reproduced, stays, pairs, _notes(question.change, pairs))
    if any(p.is_cut_short for p in pairs):
        return _undecided("the changed rerun was stopped before it could show anything")
    if not reproduced:
        return _rule_by_outcome(pairs)
    if not any(stays):
        return _rule_gone(question, reproduced, pairs)
    if all(len(stay) == len(reproduced) for stay in stays):
        return _rule_stays(reproduced, pairs)
    left = stays[0] if stays[0] else next(s for s in stays if s)
    is_some = all(stays)
    when = "a part of the symptom stays" if is_some else "the symptom stays with some seeds"
    return _undecided(f"{when}: {_list(left)}", has_cleared=False)


def _notes(change: Change, pairs: Sequence[_Pair]) -> str:
    """Return what the interventions of a change said, without those that every rerun has."""
    names = tuple(f"{i.name}: " for i in change.interventions)
    said = (n for p in pairs for n in p.changed.rerun.notes if n.startswith(names))
    return "; ".join(dict.fromkeys(said))


def _rule_idle(
    reproduced: Sequence[Symptom],
    stays: Sequence[Sequence[Symptom]],
    pairs: Sequence[_Pair],
    notes: str,
) -> _Ruling:
    if reproduced and not all(stays):
        return _undecided("the change never acted, and yet the symptom is gone: it comes and goes")
    if "failed" in notes or _never_got_there(pairs):
        return _undecided(f"the change could not act{': ' + notes if notes else ''}")
    why = f" ({notes})" if notes else ""
    return _Ruling(Verdict.REFUTED, f"the change makes no difference to what the program does{why}")


def _never_got_there(pairs: Sequence[_Pair]) -> bool:
    """Tell whether the program ended before there was anything to change."""
    return all(p.changed.steps == 0 and p.changed.crash is None for p in pairs)


def _rule_by_outcome(pairs: Sequence[_Pair]) -> _Ruling:
    """No symptom, only a line of code: a clear difference in learning decides."""
    if all(p.is_better for p in pairs):
        return _Ruling(Verdict.CONFIRMED, f"it learns further: {_courses(pairs[0])}")
    if any(p.is_worse for p in pairs):
        return _undecided(f"the changed run learns less: {_courses(pairs[0])}")
    return _undecided(f"no difference to how it learns within these steps: {_courses(pairs[0])}")


def _rule_gone(
    question: Question, reproduced: Sequence[Symptom], pairs: Sequence[_Pair]
) -> _Ruling:
    gone = f"gone: {_list(reproduced)}"
    worse = _new_trouble(pairs)
    if worse:
        return _undecided(f"{gone}; but {worse}", has_cleared=_has_moved_on(pairs))
    if any(s.crash is not None for s in reproduced):
        if all(p.has_got_past for p in pairs):
            steps = min(p.changed.steps for p in pairs)
            return _Ruling(
                Verdict.CONFIRMED, f"{gone}; it trains for {steps} steps: {pairs[0].after.words}"
            )
        return _undecided(f"{gone}; but the changed run did not get further than the failure")
    if question.harm is Harm.FINDING:
        if any(p.changed.steps == 0 < p.control.steps for p in pairs):
            return _undecided(f"{gone}; but the changed run does not train at all")
        if any(p.is_worse for p in pairs):
            return _undecided(f"{gone}; but it learns less: {_courses(pairs[0])}")
        return _Ruling(Verdict.CONFIRMED, f"{gone}; learning is no worse: {_courses(pairs[0])}")
    if all(p.is_better for p in pairs):
        return _Ruling(Verdict.CONFIRMED, f"{gone}; it learns: {_courses(pairs[0])}")
    if not any(p.after.is_known for p in pairs):
        return _undecided(f"{gone}; but whether it learns is not known", has_cleared=True)
    if any(p.is_better for p in pairs):
        return _undecided(f"{gone}; but not with every seed does it learn further")
    why = "learns no further" if pairs[0].after.is_learning else "does not learn"
    return _undecided(f"{gone}; but it {why}: {_courses(pairs[0])}", has_cleared=True)


def _rule_stays(reproduced: Sequence[Symptom], pairs: Sequence[_Pair]) -> _Ruling:
    stays = f"it stays: {_list(reproduced)}"
    if any(p.is_better for p in pairs):
        return _undecided(f"{stays}; though it learns further: {_courses(pairs[0])}")
    return _Ruling(Verdict.REFUTED, f"{stays}; and learning is no better")


def _new_trouble(pairs: Sequence[_Pair]) -> str:
    for pair in pairs:
        crash = pair.changed.crash
        if crash is not None:
            return f"the changed run fails: {crash.words}"
        if pair.changed.is_broken and not pair.control.is_broken:
            return "the loss of the changed run becomes NaN or infinite"
    return ""


def _has_moved_on(pairs: Sequence[_Pair]) -> bool:
    """Tell whether every changed rerun fails later than its control, in steps or in lines."""
    return all(_is_later(p) for p in pairs)


def _is_later(pair: _Pair) -> bool:
    first, second = pair.control.crash, pair.changed.crash
    if pair.changed.steps > pair.control.steps:
        return True
    if first is None or second is None:
        return False
    same = (first.file, first.function) == (second.file, second.function)
    return same and second.line > first.line


def _courses(pair: _Pair) -> str:
    if pair.before.is_known and pair.after.is_known:
        before, after = pair.before, pair.after
        was = f"{before.start:.4g} to {before.end:.4g}"
        return f"{after.start:.4g} to {after.end:.4g}, as it was {was}"
    return f"{pair.after.words}; as it was, {pair.before.words}"


def _list(symptoms: Sequence[Symptom]) -> str:
    return "; ".join(s.says[:1].lower() + s.says[1:] if s.detector else s.says for s in symptoms)


def _undecided(reason: str, *, has_cleared: bool = False) -> _Ruling:
    return _Ruling(Verdict.UNDECIDED, reason, has_cleared)
