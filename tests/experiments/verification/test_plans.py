"""Every cause has a test or says why it has none; values come from the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.experiments.arms import finding, hypothesis, make_run

import traindx
from traindx.causes import all_causes
from traindx.experiments.verification import plans
from traindx.experiments.verification.extent import steps_for
from traindx.experiments.verification.observed_rerun import RerunCrash
from traindx.experiments.verification.symptoms import Symptom
from traindx.model.recording import Ending, Evaluation, Optimizer, Recording
from traindx.model.run import Origin, Run, Series

INTERVENTIONS = Path(traindx.__file__).parent / "experiments" / "interventions"
PATCH = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b\n"


def test_every_cause_has_a_plan() -> None:
    assert set(plans.PLANS) == set(all_causes())


@pytest.mark.parametrize("cause", sorted(all_causes()))
def test_a_cause_is_tested_or_says_why_not(cause: str) -> None:
    made = plans.changes_for(hypothesis(cause), make_run(np.ones(200)))
    assert made or plans.why_untestable(cause)
    for change in made:
        assert change.says and change.interventions
        for intervention in change.interventions:
            assert (INTERVENTIONS / f"{intervention.name.replace('-', '_')}.py").is_file()


def test_the_patch_that_is_shown_is_what_is_tested() -> None:
    (only,) = plans.changes_for(hypothesis("missing-zero-grad", patch=PATCH), Run())
    assert only.patch == PATCH and only.says == "apply it" and not only.interventions


def test_a_lower_rate_is_advised_as_it_is_tested() -> None:
    lr = Series("lr", np.full(9, 3.0), np.arange(9.0), Origin("rank0-1.jsonl", "lr"))
    made = plans.changes_for(hypothesis("lr-too-high"), Run(series={"lr": lr}))
    assert [c.remedy for c in made] == [
        f"Reduce the peak learning rate from 3 to {value:g}" for value in (0.3, 0.03, 0.9)
    ]


def test_the_patch_of_a_finding_stands_in() -> None:
    found = replace(finding("a", shows="shape-mismatch"), patch=PATCH)
    (change,) = plans.changes_for(hypothesis("shape-mismatch", found), Run())
    assert change.patch == PATCH


def test_a_rate_of_zero_becomes_the_rate_that_was_used() -> None:
    run = make_run(np.ones(100))
    rates = np.linspace(0.03, 0.0, 100)
    lr = Series("lr", rates, np.arange(100.0), Origin("rank0-1.jsonl", "lr"))
    (change,) = plans.changes_for(hypothesis("lr-zero"), replace(run, series={"lr": lr}))
    assert change.interventions[0].values == {"value": 0.03}


def test_a_rate_that_was_always_zero_becomes_the_usual_one() -> None:
    run = make_run(np.ones(100))
    assert run.recording is not None
    process = replace(run.recording.processes[0], optimizers=(Optimizer(1, type="SGD"),))
    run = replace(run, recording=replace(run.recording, processes=(process,)))
    (change,) = plans.changes_for(hypothesis("lr-zero"), run)
    assert change.interventions[0].values == {"value": 0.01}


def test_damping_changes_are_marked() -> None:
    for cause in ("lr-too-high", "missing-warmup", "missing-gradient-clipping"):
        assert plans.plan_of(cause).is_generic
        assert all(c.is_damping for c in plans.changes_for(hypothesis(cause), Run()))
    assert not plans.plan_of("missing-zero-grad").is_generic


def test_a_value_that_went_too_far_is_followed_by_a_gentler_one() -> None:
    tenth, hundredth, third = plans.changes_for(hypothesis("lr-too-high"), Run())
    assert plans.is_worth_trying(hundredth, tenth, has_cleared=False)
    assert not plans.is_worth_trying(third, tenth, has_cleared=False)
    assert plans.is_worth_trying(third, tenth, has_cleared=True)
    assert not plans.is_worth_trying(hundredth, tenth, has_cleared=True)


def long_run(steps: int, *, exit_code: int | None = 0, evaluations: tuple[int, ...] = ()) -> Run:
    run = make_run(np.ones(10), steps=steps)
    assert run.recording is not None
    told = tuple(Evaluation(i, step=s) for i, s in enumerate(evaluations))
    process = replace(run.recording.processes[0], evaluations=told)
    ending = Ending(exit_code=exit_code, started_s=0.0, ended_s=5000.0)
    return replace(run, recording=Recording((process,), ending))


def test_a_short_run_is_rerun_whole() -> None:
    assert steps_for("lr-too-high", (Symptom("a", "a", onset=50.0),), make_run(np.ones(99))) is None
    assert steps_for("lr-too-high", (), make_run(np.ones(99)), max_steps=50) == 50


def test_a_long_run_is_cut_after_its_symptom() -> None:
    symptom = Symptom("a", "a", onset=1000.0)
    assert steps_for("lr-too-high", (symptom,), long_run(100_000)) == 1550
    assert steps_for("lr-too-high", (symptom,), long_run(1600)) is None, "nearly all of it"
    assert steps_for("lr-too-high", (symptom,), long_run(100_000), max_steps=500) == 500


def test_a_crash_is_passed_by_a_margin() -> None:
    symptom = Symptom("a", crash=RerunCrash("RuntimeError"))
    assert steps_for("shape-mismatch", (symptom,), long_run(0, exit_code=1)) == 300
    assert steps_for("index-out-of-range", (symptom,), long_run(2000, exit_code=1)) == 3050


def test_a_cause_in_the_evaluation_waits_for_one() -> None:
    run = long_run(100_000, evaluations=(5000, 10_000))
    assert steps_for("validation-in-train-mode", (), run) == 10_050
    assert steps_for("missing-zero-grad", (), run) == 300
