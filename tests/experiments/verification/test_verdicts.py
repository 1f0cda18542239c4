"""Verdicts on curves, findings and crashes: what confirms, what refutes, what does neither."""

from __future__ import annotations

import numpy as np
import pytest
from tests.experiments.arms import falling, finding, flat, observation

from traindx.experiments.changes import Change, Intervention
from traindx.experiments.verification.learning_curve import course, is_better, is_worse
from traindx.experiments.verification.observed_rerun import Observation, RerunCrash
from traindx.experiments.verification.symptoms import Symptom
from traindx.experiments.verification.verdicts import ExperimentAnswer, Harm, Question, compare
from traindx.model.findings import Finding, Verdict

STUCK = finding("stuck", "missing-zero-grad")
CHANGE = Change("cleared", (Intervention("zero-grad"),))
SYMPTOM = Symptom("stuck is there", "stuck", frozenset({"missing-zero-grad"}))
CRASH = RerunCrash("RuntimeError", "sizes", "train.py", "forward", 19, "x = self.fc1(x)")


def ask(
    controls: list[Observation],
    changed: list[Observation],
    *,
    symptom: Symptom | None = SYMPTOM,
    harm: Harm = Harm.LEARNING,
    change: Change = CHANGE,
) -> ExperimentAnswer:
    symptoms = () if symptom is None else (symptom,)
    return compare(Question("missing-zero-grad", change, symptoms, harm), controls, changed)


def control(*findings: Finding) -> Observation:
    return observation(flat(), *(findings or (STUCK,)))


def test_a_symptom_that_goes_while_the_run_learns_is_confirmed() -> None:
    answer = ask([control()], [observation(falling(), change=CHANGE)])
    assert answer.verdict is Verdict.CONFIRMED
    assert "it learns" in answer.experiment.reason
    before, after = answer.experiment.trials
    assert before.symptoms == ("stuck is there",) and after.symptoms == ()
    assert not before.is_changed and after.is_changed and len(after.losses) == 200


def test_a_finite_loss_that_does_not_fall_confirms_nothing() -> None:
    broken = observation(np.append(flat(100), np.full(100, np.nan)), STUCK)
    answer = ask([broken], [observation(flat(seed=1), change=CHANGE)])
    assert answer.verdict is Verdict.UNDECIDED and answer.has_cleared
    assert "does not learn" in answer.experiment.reason


def test_learning_as_well_as_before_confirms_nothing() -> None:
    good = observation(falling(), STUCK)
    answer = ask([good], [observation(falling(seed=1), change=CHANGE)])
    assert answer.verdict is Verdict.UNDECIDED


def test_where_the_harm_is_elsewhere_the_finding_decides() -> None:
    good = observation(falling(), STUCK)
    changed = observation(falling(seed=1), change=CHANGE)
    assert ask([good], [changed], harm=Harm.FINDING).verdict is Verdict.CONFIRMED
    for worse in (observation(flat(), change=CHANGE), observation(None, change=CHANGE)):
        assert ask([good], [worse], harm=Harm.FINDING).verdict is Verdict.UNDECIDED


def test_a_symptom_that_stays_refutes() -> None:
    answer = ask([control()], [observation(flat(seed=1), STUCK, change=CHANGE)])
    assert answer.verdict is Verdict.REFUTED


def test_a_symptom_that_stays_while_it_learns_better_refutes_nothing() -> None:
    answer = ask([control()], [observation(falling(), STUCK, change=CHANGE)])
    assert answer.verdict is Verdict.UNDECIDED


def test_a_change_that_never_acts_is_refuted() -> None:
    idle = observation(flat(), STUCK, change=CHANGE, applied={"zero-grad": 0})
    answer = ask([control()], [idle])
    assert answer.verdict is Verdict.REFUTED and answer.experiment.applied == 0


def test_a_change_that_could_not_act_refutes_nothing() -> None:
    notes = ("zero-grad: failed: TypeError",)
    idle = observation(flat(), STUCK, change=CHANGE, applied={"zero-grad": 0}, notes=notes)
    assert ask([control()], [idle]).verdict is Verdict.UNDECIDED
    gone = observation(falling(), change=CHANGE, applied={"zero-grad": 0})
    assert ask([control()], [gone]).verdict is Verdict.UNDECIDED, "it was chance"


def test_a_symptom_that_does_not_come_back_decides_nothing() -> None:
    answer = ask([observation(falling())], [observation(falling(), change=CHANGE)])
    assert answer.verdict is Verdict.UNDECIDED


def test_every_seed_has_to_agree() -> None:
    controls = [control(), observation(flat(seed=5), STUCK, seed=1)]
    good = observation(falling(), change=CHANGE)
    bad = observation(flat(seed=3), STUCK, change=CHANGE, seed=1)
    assert ask(controls, [good, bad]).verdict is Verdict.UNDECIDED
    other = observation(falling(seed=4), change=CHANGE, seed=1)
    assert ask(controls, [good, other]).verdict is Verdict.CONFIRMED


def test_a_new_failure_is_no_cure() -> None:
    died = observation(falling(40), change=CHANGE, crash=RerunCrash("NameError"))
    assert ask([control()], [died]).verdict is Verdict.UNDECIDED
    broken = observation(np.append(falling(100), [np.nan]), change=CHANGE)
    assert ask([control()], [broken]).verdict is Verdict.UNDECIDED


def test_a_rerun_that_was_cut_short_decides_nothing() -> None:
    short = observation(falling(20), change=CHANGE, stopped="time")
    assert ask([control()], [short]).verdict is Verdict.UNDECIDED


def test_a_crash_is_gone_once_training_goes_past_it() -> None:
    symptom = Symptom("RuntimeError at train.py:19", crash=CRASH)
    failed = observation(None, crash=CRASH, steps=0)
    trained = observation(flat(20), change=CHANGE)
    assert ask([failed], [trained], symptom=symptom).verdict is Verdict.CONFIRMED
    still = observation(None, crash=CRASH, steps=0, change=CHANGE)
    assert ask([failed], [still], symptom=symptom).verdict is Verdict.REFUTED
    idle = observation(None, change=CHANGE)
    assert ask([failed], [idle], symptom=symptom).verdict is Verdict.UNDECIDED


def test_another_crash_further_on_clears_the_first_only() -> None:
    symptom = Symptom("RuntimeError at train.py:19", crash=CRASH)
    failed = observation(None, crash=CRASH, steps=0)
    later = RerunCrash("RuntimeError", "sizes", "train.py", "forward", 21, "x = self.fc2(x)")
    moved = observation(None, crash=later, steps=0, change=CHANGE)
    source = "x = self.fc1(x)\nx = self.fc2(x)\n"
    from dataclasses import replace

    from traindx.model.run import Source

    moved = replace(moved, run=replace(moved.run, sources=(Source("train.py", source),)))
    answer = ask([failed], [moved], symptom=symptom)
    assert answer.verdict is Verdict.UNDECIDED and answer.has_cleared


def test_without_a_symptom_the_outcome_decides() -> None:
    slow = observation(falling(end=1.6))
    fast = observation(falling(end=0.2), change=CHANGE)
    assert ask([slow], [fast], symptom=None).verdict is Verdict.CONFIRMED
    same = observation(falling(end=1.6, seed=2), change=CHANGE)
    assert ask([slow], [same], symptom=None).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_learning(seed: int) -> None:
    for count in (12, 40, 200, 2000):
        assert not course(flat(count, seed=seed)).is_learning
        assert course(falling(max(count, 30), seed=seed)).is_learning


def test_two_flat_losses_are_neither_better_nor_worse() -> None:
    for seed in range(20):
        one, two = course(flat(100, seed=seed)), course(flat(100, seed=seed + 100))
        assert not is_better(one, two) and not is_worse(one, two)


def test_losses_of_different_scale_are_compared_by_their_falls() -> None:
    summed, mean = course(64 * falling(end=0.3)), course(falling(end=0.3, seed=1))
    assert not is_better(mean, summed) and not is_worse(mean, summed)
    assert is_better(mean, course(64 * falling(end=1.9)))


def test_a_loss_learnt_in_the_first_steps_counts() -> None:
    values = np.append([1.6, 0.05], np.full(100, 0.01))
    assert course(values).is_learning
    assert course(np.array([1.6])).is_known is False


def test_a_loss_on_its_way_to_infinity_is_broken() -> None:
    assert course(np.append(falling(50), [1e35])).is_broken


def test_a_smaller_rate_that_learns_less_is_not_better() -> None:
    assert not is_better(course(falling(end=1.5)), course(falling(end=0.3)))
    assert is_worse(course(falling(end=1.8)), course(falling(end=0.3)))


def test_what_the_run_shows_is_not_refuted_by_a_change_that_misses_it() -> None:
    idle = observation(flat(), STUCK, change=CHANGE, applied={"zero-grad": 0})
    question = Question("missing-zero-grad", CHANGE, (SYMPTOM,), is_shown=True)
    assert compare(question, [control()], [idle]).verdict is Verdict.UNDECIDED


def test_a_control_that_swings_wildly_is_no_excuse() -> None:
    rng = np.random.default_rng(0)
    swinging = 1.4 + np.abs(np.linspace(0, 3, 60) * rng.standard_normal(60))
    assert is_better(course(falling(60, 1.43, 0.7)), course(swinging))
    assert not is_better(course(flat(60, 1.43)), course(swinging))
