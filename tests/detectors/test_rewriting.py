"""A rule says the same of a program that does the same, however it is written."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from bench.rewriting import NAMES
from bench.rewriting.__main__ import examples_of, fires, is_tried, rewritten_run, source_rules

from traindx.registry import Detector

LOST = 0.05  # of the faults that a rule finds, that it may lose; an accusation more is never right
SPARE = 1  # and one more, where a rule has few examples
SHARE = 3  # one in so many is tried here, always the same; `python -m bench.rewriting` tries all


@pytest.fixture(autouse=True, scope="module")
def rare_collections() -> Iterator[None]:
    """Thousands of syntax trees live shortly; to look through all objects for each costs most."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("rule", source_rules(), ids=lambda d: d.name)
def test_the_verdict_is_the_same(rule: Detector) -> None:
    accused, lost, tried = [], [], 0
    for number, (run, expected) in enumerate(examples_of(rule)):
        for name in NAMES:
            new = rewritten_run(run, name) if is_tried(SHARE, rule.name, number, name) else None
            if new is None:
                continue
            found = fires(rule, new)
            tried += expected
            if found and not expected:
                accused.append((name, new.sources))
            elif expected and not found:
                lost.append((name, new.sources))
    assert not accused, f"{accused[0][0]}:\n{accused[0][1]}"
    allowed = LOST * tried + SPARE
    assert len(lost) <= allowed, f"{len(lost)} of {tried}: {[name for name, _ in lost]}"
