"""One call makes a finding of a recording or a curve."""

from __future__ import annotations

from traindx.model.findings import Evidence, Location, Strength, finding, suggested
from traindx.model.recording import Place

EVIDENCE = Evidence("the loss rises", "train.log", "line 3", (30.0, 40.0))


def test_one_cause_is_shown():
    found = finding("The loss rises", "lr-too-high", EVIDENCE)
    assert (found.shows, dict(found.suggests)) == ("lr-too-high", {})
    assert found.strength is Strength.STRONG
    assert found.is_symptom


def test_a_cause_may_only_become_likelier():
    found = finding("The loss rises", {"lr-too-high": Strength.WEAK}, EVIDENCE)
    assert (found.shows, found.suggests) == (None, {"lr-too-high": Strength.WEAK})


def test_several_causes_are_suggested_and_one_of_them_may_be_shown():
    causes = suggested(strong="lr-too-high", weak="outlier-batch bad-initialisation")
    assert list(causes) == ["lr-too-high", "outlier-batch", "bad-initialisation"]
    assert finding("The loss rises", causes, EVIDENCE).shows is None
    assert finding("The loss rises", causes, EVIDENCE, shows="lr-too-high").suggests == causes


def test_it_began_where_the_first_evidence_begins_unless_said_otherwise():
    assert finding("The loss rises", {}, EVIDENCE).onset == 30.0
    assert finding("The loss rises", {}, EVIDENCE, onset=10).onset == 10.0
    assert finding("The loss rises", {}, Evidence("a file", "net.pt")).onset is None


def test_a_recorded_place_becomes_a_location():
    found = finding("The loss rises", {}, EVIDENCE, place=Place("train.py", 4))
    assert found.location == Location("train.py", 4, 4)
