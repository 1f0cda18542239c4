"""Every need is declared, in words that are no pattern."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from traindx.diagnosis.running import gather
from traindx.examples import make_run
from traindx.model.needs import NEEDS, need_of, without
from traindx.model.run import Artifact
from traindx.registry import detectors
from traindx.report.catalogue import needs_in_words

PATTERN = re.compile(r"[*|\[]|\b(?:other|loss|accuracy)/")
USED = {need for detector in detectors().items for need in detector.needs}
LEFT = {without(need, {"events", "failure"}) for need in USED}  # once a log was read


@pytest.mark.parametrize("need", sorted(USED))
def test_the_need_of_a_detector_is_declared(need: str) -> None:
    assert need in NEEDS, "say in traindx/model/needs.py what it is and how to get it"


@pytest.mark.parametrize("need", sorted(NEEDS))
def test_a_declared_need_is_used(need: str) -> None:
    assert need in USED | LEFT


@pytest.mark.parametrize("need", sorted(NEEDS))
def test_nobody_is_asked_for_a_pattern(need: str) -> None:
    declared = NEEDS[need]
    for text in (declared.what, declared.how, declared.way()):
        assert text and not PATTERN.search(text)


def test_a_run_with_nothing_is_told_how_to_get_everything() -> None:
    skipped = gather(make_run()).skipped
    assert len(skipped) > 200
    assert not [s.how for s in skipped if PATTERN.search(s.how)]


def test_whoever_passed_the_log_is_not_asked_for_it() -> None:
    run = replace(make_run(), artifacts=(Artifact("train.log", "console"),))
    gathered = gather(run)
    assert "target-size-warning" in gathered.checked, "the log was read and holds no warning"
    assert "uncaught-exception" in gathered.checked
    assert not [s for s in gathered.skipped if "console log" in s.how or "traceback" in s.how]
    (scale,) = (s for s in gathered.skipped if s.detector == "falling-loss-scale")
    assert scale.needs == ("loss_scale",)


def test_whoever_has_a_recording_is_not_told_to_make_one() -> None:
    need = NEEDS["grad_norm"]
    assert need.way() == "log the gradient norm, or use traindx run"
    assert need.way(has_recording=True) == "log the gradient norm"


@pytest.mark.parametrize(
    ("need", "what", "how"),
    [
        (
            "source|config",
            "the training code or the config",
            "pass the training script, or pass the conf",
        ),
        ("other/*[Tt]oken_drop*", "token drop", "log token drop"),
        ("other/*", NEEDS["other/*"].what, NEEDS["other/*"].how),
        ("*", "more metrics", "log more metrics"),
    ],
)
def test_the_need_of_a_plugin_is_put_into_words(need: str, what: str, how: str) -> None:
    found = need_of(need)
    assert found.what == what and found.how.startswith(how)


def test_the_catalogue_shows_no_pattern() -> None:
    assert not [d.name for d in detectors().items if PATTERN.search(needs_in_words(d))]
