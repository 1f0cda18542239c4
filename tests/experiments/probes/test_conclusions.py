from __future__ import annotations

from traindx.experiments.probes.conclusions import leading
from traindx.model.probes import Effect, Probe

RANKS = {"inputs standardised": 1, "learning rate × 100": 5, "both": 8}


def probe(change: str, after: float, effect: Effect = Effect.HELPS) -> Probe:
    return Probe(change, "a-cause", "loss/val", 6.8, after, 0.5, effect, 2, 200)


def test_the_specific_change_leads_among_equals() -> None:
    found = leading([probe("learning rate × 100", 0.2), probe("inputs standardised", 0.3)], RANKS)
    assert found is not None
    assert found.change == "inputs standardised"


def test_one_change_leads_where_two_at_once_do_no_more() -> None:
    found = leading([probe("both", 0.4), probe("learning rate × 100", 0.1)], RANKS)
    assert found is not None
    assert found.change == "learning rate × 100"


def test_two_changes_lead_where_neither_does_as_much() -> None:
    found = leading([probe("both", 0.1), probe("learning rate × 100", 5.0)], RANKS)
    assert found is not None
    assert found.change == "both"


def test_what_does_not_help_leads_nowhere() -> None:
    assert leading([probe("both", 0.1, Effect.OPEN)], RANKS) is None
