"""Alerts: well founded, new, and said once."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np
import pytest

from traindx.api import live_diagnosis
from traindx.capture.launcher.alerts import Alerts
from traindx.capture.launcher.record_tail import Following
from traindx.examples import decay
from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Finding,
    Hypothesis,
    Location,
    Status,
    Strength,
)


def hypothesis(
    cause: str, confidence: float, strength: Strength, *, shows: bool = False
) -> Hypothesis:
    finding = Finding(
        f"claim of {cause}",
        strength,
        (Evidence("seen", "rank0-1.jsonl"),),
        shows=cause if shows else None,
        location=Location("train.py", 4, 4),
    )
    return Hypothesis(cause, confidence, issue=f"Issue of {cause}.", findings=(finding,))


def diagnosis(*hypotheses: Hypothesis) -> Diagnosis:
    return Diagnosis(Status.COMPLETE, "", hypotheses=hypotheses)


def alerts(folder: Path, look: object = None, tell: object = None) -> Alerts:
    return Alerts(folder, look, tell, first_look_s=0.01)  # type: ignore[arg-type]


def test_only_well_founded_root_causes_are_told_and_each_once(tmp_path: Path) -> None:
    watch = alerts(tmp_path)
    found = diagnosis(
        hypothesis("strong", 0.8, Strength.STRONG),
        hypothesis("shown", 0.95, Strength.WEAK, shows=True),
        hypothesis("circumstantial", 0.8, Strength.MODERATE),
        hypothesis("open", 0.6, Strength.STRONG),
    )
    assert list(watch.news(found)) == [
        "alert: Issue of strong (strong, confidence 0.80, train.py:4)",
        "alert: Issue of shown (shown, confidence 0.95, train.py:4)",
    ]
    assert list(watch.news(found)) == []
    later = diagnosis(hypothesis("another", 0.9, Strength.STRONG))
    assert len(list(watch.news(later))) == 1


def test_a_consequence_is_not_told(tmp_path: Path) -> None:
    found = Diagnosis(
        Status.COMPLETE,
        "",
        hypotheses=(hypothesis("effect", 0.9, Strength.STRONG),),
        folded={"effect": "cause"},
    )
    assert list(alerts(tmp_path).news(found)) == []


def test_a_recording_that_does_not_grow_is_not_looked_at_again(tmp_path: Path) -> None:
    looks: list[Path] = []
    told: list[str] = []

    def look(folder: Path) -> Diagnosis:
        looks.append(folder)
        return diagnosis(hypothesis("strong", 0.8, Strength.STRONG))

    watch = alerts(tmp_path, look, told.append)
    (tmp_path / "output.log").write_text("step 1 loss 2.0\n")
    for _ in range(3):
        watch._look_once()
    assert len(looks) == 1
    (tmp_path / "output.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    watch._look_once()
    assert (len(looks), len(told)) == (2, 1)


def test_alerts_are_told_while_it_runs_until_they_are_stopped(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("step 1 loss 2.0\n")
    told: list[str] = []
    has_told = Event()

    def tell(line: str) -> None:
        told.append(line)
        has_told.set()

    watch = alerts(tmp_path, lambda _: diagnosis(hypothesis("c", 0.9, Strength.STRONG)), tell)
    watch.start()
    assert has_told.wait(30)
    watch.stop()
    assert len(told) == 1


def test_a_sign_hurries_a_look_once_for_each_kind(tmp_path: Path) -> None:
    records = tmp_path / "rank0-7.jsonl"
    following = Following(tmp_path)

    def is_hurried(*lines: str) -> bool:
        with records.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        following.look()
        return following.take_signs()

    moved = '{"k":"counts","steps":9,"has_moved":true}'
    still = moved.replace("true", "false")
    assert not is_hurried('{"k":"process"}', moved)
    assert is_hurried('{"k":"nonfinite","step":3}')
    assert not is_hurried('{"k":"nonfinite","step":3}', moved)
    assert is_hurried(still)
    assert not is_hurried(still)


def test_a_look_that_is_hurried_does_not_wait_for_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traindx.capture.launcher.alerts.AT_SIGNS_S", 0.0)
    (tmp_path / "output.log").write_text("step 1 loss 2.0\n")
    has_told = Event()
    found = diagnosis(hypothesis("c", 0.9, Strength.STRONG))
    watch = Alerts(tmp_path, lambda _: found, lambda _: has_told.set(), first_look_s=3600.0)
    watch.start()
    watch.hurry()
    assert has_told.wait(30)
    watch.stop()
    watch._thread.join(30)
    assert not watch._thread.is_alive()


def test_a_look_that_fails_ends_the_alerts_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("step 1 loss 2.0\n")

    def look(_: Path) -> Diagnosis:
        raise ZeroDivisionError

    watch = alerts(tmp_path, look)
    watch.start()
    watch._thread.join(30)
    assert not watch._thread.is_alive()


def test_a_look_is_a_process_of_its_own_and_reads_what_is_there(tmp_path: Path) -> None:
    values = np.concatenate([decay(100), 0.4 * np.exp(np.arange(40) / 6.0)])
    lines = "".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(values))
    (tmp_path / "output.log").write_text(lines)
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the user is in the way')")
    looker = live_diagnosis()
    found = looker.look(tmp_path)
    assert found is not None and found.root_causes[0].cause == "lr-too-high"
    looker.stop()
    assert looker.look(tmp_path) is None


def test_an_unreadable_recording_gives_no_diagnosis(tmp_path: Path) -> None:
    assert live_diagnosis().look(tmp_path) is None
