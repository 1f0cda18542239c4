"""Every detector on its own examples; the same test serves plugin authors."""

from __future__ import annotations

import sys

import pytest

from traindx.causes import all_causes
from traindx.model.former_names import PRESENT_NAMES
from traindx.registry import Detector, detector_named, detectors

ALL = detectors().items
HEADINGS = ("## What it detects", "## Why it matters", "## What to do", "## When it is wrong")


def examples(name: str) -> list[tuple[Detector, str]]:
    return [(d, label) for d in ALL for label in getattr(sys.modules[d.check.__module__], name)]


def ids(pair: tuple[Detector, str]) -> str:
    return f"{pair[0].name}: {pair[1]}"


@pytest.mark.parametrize("pair", examples("FIRES"), ids=ids)
def test_fires(pair: tuple[Detector, str]) -> None:
    detector, label = pair
    run = sys.modules[detector.check.__module__].FIRES[label]
    assert all(run.has(need) for need in detector.needs), "the example lacks what it needs"
    findings = list(detector.check(run))
    assert findings
    for finding in findings:
        assert finding.evidence, "a claim needs evidence that can be looked up"
        named = {*finding.suggests, *finding.against, *([finding.shows] if finding.shows else [])}
        assert named <= all_causes().keys()
        assert {*finding.suggests, finding.shows} - {None} <= {*detector.suggests}
        assert finding.claim[0].isupper() or not finding.claim[0].isalpha()
        assert not finding.claim.endswith(".")


@pytest.mark.parametrize("pair", examples("SILENT"), ids=ids)
def test_silent(pair: tuple[Detector, str]) -> None:
    detector, label = pair
    assert list(detector.check(sys.modules[detector.check.__module__].SILENT[label])) == []


@pytest.mark.parametrize("detector", ALL, ids=lambda d: d.name)
def test_documented(detector: Detector) -> None:
    module = sys.modules[detector.check.__module__]
    assert len(module.FIRES) >= 1
    assert len(module.SILENT) >= 2
    assert any("near miss" in label for label in module.SILENT)
    positions = [detector.doc.find(heading) for heading in HEADINGS]
    assert -1 not in positions and positions == sorted(positions)
    assert set(detector.suggests) <= all_causes().keys()


def test_names_are_unique() -> None:
    names = [d.name for d in ALL]
    assert len(names) == len(set(names))
    assert not {"check", "detector", "rule"} & {w for n in names for w in n.split("-")}


@pytest.mark.parametrize(("former", "present"), PRESENT_NAMES.items())
def test_a_former_name_leads_to_the_detector(former: str, present: str) -> None:
    found = detector_named(former)
    assert found is not None
    assert found.name == present


def test_former_names_are_nobody_elses() -> None:
    present = {d.name for d in ALL}
    assert not PRESENT_NAMES.keys() & (present | all_causes().keys())
    assert set(PRESENT_NAMES.values()) <= present
