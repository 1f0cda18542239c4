"""What experiments do to a diagnosis: they decide, and everything else follows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from traindx.diagnosis.engine import HIGHEST_TESTED, judge
from traindx.diagnosis.hypotheses import fold, weigh
from traindx.diagnosis.summary import status_of, summary_of
from traindx.examples import make_run
from traindx.model.findings import (
    LISTED_FROM,
    Diagnosis,
    Evidence,
    Experiment,
    Finding,
    Hypothesis,
    Location,
    Status,
    Strength,
    Trial,
    Verdict,
)

RUN = make_run({"loss/train": [2.3] * 20})
FACT = Evidence("the loss stays at 2.3", "train.log", "line 1 to 20")
LINE = Evidence("no zero_grad", "train.py", "line 9")
SYMPTOM = Finding(
    "The loss does not fall",
    Strength.STRONG,
    (FACT,),
    suggests={"lr-too-high": Strength.STRONG, "missing-zero-grad": Strength.STRONG},
    is_symptom=True,
    detector="plateau",
)
SOURCE = Finding(
    "Gradients are never zeroed",
    Strength.STRONG,
    (LINE,),
    shows="missing-zero-grad",
    location=Location("train.py", 9, 9),
    detector="loop-without-zero-grad",
)


def diagnosed(*findings: Finding) -> Diagnosis:
    hypotheses = weigh(findings, RUN)
    draft = Diagnosis(
        Status.HEALTHY, "", tuple(hypotheses), findings, ("plateau",), folded=fold(hypotheses)
    )
    status = status_of(draft, RUN)
    return Diagnosis(
        status, summary_of(draft, status, RUN), draft.hypotheses, findings, draft.checked
    )


def trials(changed_ends: float, symptoms: Iterable[str] = (), seeds: int = 3) -> tuple[Trial, ...]:
    steps = tuple(map(float, range(1, 121)))
    made = []
    for seed in range(seeds):
        flat = (2.3,) * 120
        falls = tuple(2.3 + (changed_ends - 2.3) * i / 119 for i in range(120))
        made.append(Trial(False, seed, steps, flat, ("The loss does not fall",), "ended"))
        made.append(Trial(True, seed, steps, falls, tuple(symptoms), "ended"))
    return tuple(made)


def experiment_on(cause: str, verdict: Verdict, change: str = "a change") -> Experiment:
    works = verdict is Verdict.CONFIRMED
    arms = trials(0.2) if works else trials(2.3, ["The loss does not fall"])
    return Experiment(cause, change, verdict, "because", arms, applied=120, duration_s=4.2)


def of(diagnosis: Diagnosis, cause: str) -> Hypothesis:
    return next(h for h in diagnosis.hypotheses if h.cause == cause)


def test_rivals_halve_each_other_until_one_is_tested() -> None:
    before = diagnosed(SYMPTOM)
    assert before.status is Status.INSUFFICIENT
    after = judge(before, [experiment_on("lr-too-high", Verdict.CONFIRMED)], RUN)
    assert after.status is Status.COMPLETE
    assert [h.cause for h in after.root_causes] == ["lr-too-high"]
    assert of(after, "lr-too-high").confirmed
    assert of(after, "lr-too-high").confidence == HIGHEST_TESTED
    assert of(after, "missing-zero-grad").confidence < 0.05
    assert "confirmed by experiment" in after.summary
    assert after.questions == ()


def test_the_evidence_of_an_experiment_can_be_looked_up() -> None:
    experiment = experiment_on("lr-too-high", Verdict.CONFIRMED, "lr from 0.1 to 0.01")
    cause = of(judge(diagnosed(SYMPTOM), [experiment], RUN), "lr-too-high")
    fact = next(e for e in cause.evidence if e.artifact.startswith("experiment"))
    assert fact.artifact == "experiment: lr from 0.1 to 0.01"
    assert fact.locator == "control and changed, seeds 0-2, 120 steps"
    assert fact.values["control_last"] == pytest.approx(2.3)
    assert fact.values["changed_last"] == pytest.approx(0.2, abs=0.15)
    assert "as it is: loss 2.3 → 2.3 in 120 steps, the loss does not fall (3 seeds)" in fact.says
    assert "symptom absent (3 seeds)" in fact.says


def test_refuting_one_rival_leaves_the_symptom_to_the_other() -> None:
    before = diagnosed(SYMPTOM)
    after = judge(before, [experiment_on("lr-too-high", Verdict.REFUTED)], RUN)
    assert of(after, "lr-too-high").confidence < 0.05
    assert of(after, "missing-zero-grad").confidence > of(before, "missing-zero-grad").confidence
    assert [h.cause for h in after.root_causes] == ["missing-zero-grad"]
    assert of(after, "lr-too-high").counter_evidence[0].artifact == "experiment: a change"


def test_a_fault_in_the_source_that_is_refuted_stays_as_a_remark() -> None:
    before = diagnosed(SYMPTOM, SOURCE)
    assert [h.cause for h in before.root_causes] == ["missing-zero-grad"]
    after = judge(before, [experiment_on("missing-zero-grad", Verdict.REFUTED)], RUN)
    assert 0.4 < of(after, "missing-zero-grad").confidence < LISTED_FROM, "open, not gone"
    assert SOURCE in after.remarks
    assert any("there, but not shown to ail this run" in f.claim for f in after.remarks)


def test_a_fault_in_the_source_stays_listed_beside_what_another_experiment_confirms() -> None:
    after = judge(
        diagnosed(SYMPTOM, SOURCE), [experiment_on("lr-too-high", Verdict.CONFIRMED)], RUN
    )
    assert [h.cause for h in after.root_causes] == ["lr-too-high", "missing-zero-grad"]


def test_undecided_changes_nothing_but_is_kept() -> None:
    before = diagnosed(SYMPTOM, SOURCE)
    after = judge(before, [experiment_on("missing-zero-grad", Verdict.UNDECIDED)], RUN)
    assert after.hypotheses == before.hypotheses
    assert (after.status, after.summary) == (before.status, before.summary)
    assert len(after.experiments) == 1


def test_when_all_is_refuted_the_summary_says_what_is_ruled_out() -> None:
    tests = [experiment_on(c, Verdict.REFUTED) for c in ("lr-too-high", "missing-zero-grad")]
    after = judge(diagnosed(SYMPTOM), tests, RUN)
    assert after.status is Status.INSUFFICIENT
    assert after.root_causes == ()
    assert "experiments rule out" in after.summary and "decide between" not in after.summary
    assert not any("lr-too-high" in q for q in after.questions)


def test_a_change_that_helps_outweighs_one_that_does_not() -> None:
    tests = [experiment_on("lr-too-high", v) for v in (Verdict.REFUTED, Verdict.CONFIRMED)]
    cause = of(judge(diagnosed(SYMPTOM), tests, RUN), "lr-too-high")
    assert cause.confirmed and cause.opposing == ()


def test_a_cause_nobody_suggested_appears_with_its_experiment() -> None:
    after = judge(
        diagnosed(SYMPTOM), [experiment_on("weight-decay-too-high", Verdict.CONFIRMED)], RUN
    )
    first = after.root_causes[0]
    assert first.cause == "weight-decay-too-high" and first.confirmed
    assert first.issue and first.remedies
    assert after.status is Status.COMPLETE  # its change took the symptom away


def test_a_symptom_that_the_change_does_not_touch_is_still_unexplained() -> None:
    other = Finding("Validation rises", Strength.STRONG, (FACT,), is_symptom=True, detector="gap")
    after = judge(diagnosed(SYMPTOM, other), [experiment_on("lr-too-high", Verdict.CONFIRMED)], RUN)
    assert after.status is Status.PARTIAL


def test_judging_again_comes_to_the_same() -> None:
    first = experiment_on("lr-too-high", Verdict.REFUTED)
    second = experiment_on("missing-zero-grad", Verdict.CONFIRMED)
    at_once = judge(diagnosed(SYMPTOM), [first, second], RUN)
    in_turn = judge(judge(diagnosed(SYMPTOM), [first], RUN), [second], RUN)
    assert in_turn == at_once
    assert judge(at_once, [first, second], RUN) == at_once


def test_a_judged_diagnosis_survives_json() -> None:
    broken = Trial(True, 0, (1.0, 2.0), (2.3, float("nan")), ("it crashed",), "ValueError: x")
    odd = Experiment("lr-too-high", "x", Verdict.REFUTED, "NaN", (broken,))
    after = judge(diagnosed(SYMPTOM, SOURCE), [odd], RUN)
    text = json.dumps(after.to_dict(), allow_nan=False)
    again = Diagnosis.from_dict(json.loads(text))
    assert json.dumps(again.to_dict()) == text
    assert again.experiments[0].trials[0].ending == "ValueError: x"
    judged = judge(again, [experiment_on("missing-zero-grad", Verdict.CONFIRMED)])
    assert judged.root_causes[0].confirmed


def test_a_confirmed_cause_is_no_consequence_of_an_argued_one() -> None:
    shown = Finding("lr is 10", Strength.STRONG, (FACT,), shows="lr-too-high", is_symptom=True)
    effect = Finding("spikes", Strength.STRONG, (FACT,), shows="missing-gradient-clipping")
    before = diagnosed(shown, effect)
    assert [h.cause for h in before.root_causes] == ["lr-too-high"] or before.folded == {}
    after = judge(before, [experiment_on("missing-gradient-clipping", Verdict.CONFIRMED)], RUN)
    assert after.root_causes[0].cause == "missing-gradient-clipping"


def test_what_the_proven_change_took_away_is_left_to_nobody() -> None:
    climb = Finding(
        "The loss climbs",
        Strength.STRONG,
        (FACT,),
        suggests={"lr-too-high": Strength.STRONG, "missing-gradient-clipping": Strength.MODERATE},
        is_symptom=True,
        detector="loss-divergence",
    )
    proof = experiment_on("missing-zero-grad", Verdict.CONFIRMED)
    contrast = replace(
        proof,
        cause="lr-too-high",
        verdict=Verdict.REFUTED,
        trials=tuple(
            replace(t, symptoms=() if t.is_changed else (climb.claim,)) for t in proof.trials
        ),
    )
    found = judge(diagnosed(SYMPTOM, climb), (proof, contrast), RUN)
    assert [h.cause for h in found.root_causes] == ["missing-zero-grad"]
    assert found.status is Status.COMPLETE


def test_a_fault_in_the_source_never_becomes_no_problem_found() -> None:
    healthy = make_run({"loss/train": [2.0 - 0.05 * i for i in range(30)]})
    after = judge(diagnosed(SOURCE), [experiment_on("missing-zero-grad", Verdict.REFUTED)], healthy)
    assert after.status is Status.INSUFFICIENT
    assert "an experiment does not show" in after.summary


def test_rivals_of_a_confirmed_cause_are_closed() -> None:
    after = judge(diagnosed(SYMPTOM), [experiment_on("lr-too-high", Verdict.CONFIRMED)], RUN)
    assert after.folded["missing-zero-grad"] == "lr-too-high"
    assert of(after, "lr-too-high").consequences == (), "a rival is no consequence"
    after = judge(diagnosed(SYMPTOM, SOURCE), [experiment_on("lr-too-high", Verdict.CONFIRMED)])
    assert "missing-zero-grad" not in after.folded, "it stands in the source"


def test_what_is_advised_is_what_was_proven() -> None:
    proof = replace(
        experiment_on("lr-too-high", Verdict.CONFIRMED), remedy="Reduce lr from 3.0 to 0.03"
    )
    cause = of(judge(diagnosed(SYMPTOM), [proof], RUN), "lr-too-high")
    assert cause.remedies[0].change == "Reduce lr from 3.0 to 0.03"


def test_the_patch_covers_every_place_of_the_fault() -> None:
    def at_line(line: int) -> Finding:
        hunk = f"@@ -{line},1 +{line},2 @@\n step()\n+zero_grad()\n"
        return replace(
            SOURCE,
            location=Location("train.py", line, line),
            patch=f"--- a/train.py\n+++ b/train.py\n{hunk}",
        )

    patch = of(diagnosed(at_line(9), at_line(40)), "missing-zero-grad").remedies[0].patch
    assert patch is not None and patch.count("+zero_grad()") == 2
