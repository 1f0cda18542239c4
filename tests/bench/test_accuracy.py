"""The counts behind the published scores, on judgements whose scores are known by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.accuracy import calibration, pages, report
from bench.accuracy.incidents import WHOLE, Incident, family_of
from bench.accuracy.judging import Judged, Named
from bench.accuracy.scores import Pair, confusions, interval, pair_up, score


def incident(name: str, cause: str | None, **more: object) -> Incident:
    accepted = frozenset({cause} if cause else ())
    values: dict[str, object] = {
        "name": name, "half": "develop", "folder": Path("nowhere"), "program": "mlp",
        "framework": "plain", "operator": "some", "strength": "", "injected": cause,
        "cause": cause, "accepted": accepted, "file": "train.py", "line": 12, "crashed": False,
    }  # fmt: skip
    return Incident(**{**values, **more})  # type: ignore[arg-type]


def judged(name: str, *named: tuple[str, float], status: str = "diagnosis_complete") -> Judged:
    causes = tuple(Named(c, p, p >= 0.7, p > 0.9, "a/train.py", 12) for c, p in named)
    return Judged(name, WHOLE, status, 0.5, causes)


RIGHT = Pair(incident("a", "lr-zero"), judged("a", ("lr-zero", 0.95)))
SECOND = Pair(incident("b", "lr-zero"), judged("b", ("dead-relu", 0.8), ("lr-zero", 0.3)))
SILENT = Pair(incident("c", "lr-zero"), judged("c", status="no_problem_found"))
UNSURE = Pair(
    incident("d", "lr-zero"), judged("d", ("lr-zero", 0.5), status="insufficient_evidence")
)
CALM = Pair(incident("e", None), judged("e", status="no_problem_found"))
ALARM = Pair(incident("f", None), judged("f", ("dead-relu", 0.9)))
WEAK = Pair(incident("g", None, injected="lr-too-low"), judged("g", ("lr-too-low", 0.75)))
ALL = (RIGHT, SECOND, SILENT, UNSURE, CALM, ALARM, WEAK)


def test_the_counts() -> None:
    made = score(ALL)
    assert (made.faulty, made.healthy) == (4, 3)
    assert (made.first, made.three, made.listed) == (2, 3, 1)
    assert (made.wrong, made.abstained, made.overlooked) == (1, 1, 1)
    assert (made.located, made.with_line) == (2, 2)
    assert made.false_alarms == 1, (
        "naming a fault that was put in and proved weak is no false alarm"
    )


def test_a_line_next_door_counts_and_another_file_does_not() -> None:
    near = Pair(incident("a", "lr-zero", line=13), RIGHT.judged)
    far = Pair(incident("a", "lr-zero", line=15), RIGHT.judged)
    elsewhere = Pair(incident("a", "lr-zero", file="model.py"), RIGHT.judged)
    assert (near.is_located, far.is_located, elsewhere.is_located) == (True, False, False)
    assert SECOND.is_located is None, "a wrong cause has no place to compare"


def test_what_is_taken_for_what() -> None:
    counted = confusions(ALL)
    assert counted["lr-zero", "dead-relu"] == 1
    assert counted["lr-zero", "healthy"] == 1
    assert counted["lr-zero", "undecided"] == 1
    assert counted["healthy", "dead-relu"] == 1


def test_the_interval_of_a_share() -> None:
    low, high = interval(9, 10)
    assert low == pytest.approx(0.596, abs=0.005)
    assert high == pytest.approx(0.982, abs=0.005)
    assert interval(0, 0) == (0.0, 1.0)


def test_calibration_of_beliefs_that_are_always_right_at_ninety_percent() -> None:
    beliefs = [calibration.Belief(0.9, True)] * 10
    assert calibration.expected_error(beliefs) == pytest.approx(0.1)
    assert calibration.brier(beliefs) == pytest.approx(0.01)
    honest = [calibration.Belief(0.8, i < 8) for i in range(10)]
    assert calibration.expected_error(honest) == pytest.approx(0.0)


def test_answers_are_what_is_listed_and_leading_what_is_first() -> None:
    assert [b.is_right for b in calibration.answers(ALL)] == [True, False, False, True]
    assert [b.is_right for b in calibration.leading(ALL)] == [True, False, True, False, True]


def test_pairs_are_made_for_one_set_of_artifacts() -> None:
    made = pair_up([RIGHT.incident, CALM.incident], [RIGHT.judged, SECOND.judged], WHOLE)
    assert [p.incident.name for p in made] == ["a"]
    assert pair_up([RIGHT.incident], [RIGHT.judged], "log") == []


def test_the_report_reads_in_both_formats() -> None:
    made = report.sections([p.incident for p in ALL], [p.judged for p in ALL])
    text = pages.to_markdown("Accuracy", made)
    assert "first cause right, recording + source | ≥ 90 % | 50.0% (2/4; 15%–85%)" in text
    page = pages.to_html("<Accuracy>", made)
    assert "&lt;Accuracy&gt;" in page
    assert page.count("<svg") == 3


def test_every_cause_has_a_family() -> None:
    assert family_of("lr-zero") == "optimisation"
    assert family_of("no such cause") == "other"
