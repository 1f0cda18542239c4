"""Sums that grow in a loop, and what they are divided by."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.counters import (
    counter_of,
    counters,
    counts_matches,
    is_index,
    is_one,
    length_of,
    quotients,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run


def _story(text: str) -> Story:
    return program_of(make_run(sources={"train.py": "import torch\n" + text})).stories[0]


LOOP = "n = 0\nfor i, (x, y) in enumerate(loader):\n    n {}\nprint(n / len(loader))"


@pytest.mark.parametrize("form", ["+= x.sum()", "= n + x.sum()"])
def test_a_sum_and_its_divisor(form: str) -> None:
    story = _story(LOOP.format(form))
    ((_, above, below),) = quotients(story)
    counter = counter_of(above, counters(story))
    assert counter is not None and counter.name == "n"
    assert length_of(below) is not None


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        ("i", is_index),
        ("1", is_one),
        ("(x.argmax(1) == y).sum().item()", counts_matches),
        ("x.eq(y).float().sum()", counts_matches),
    ],
)
def test_what_is_added(term: str, kind: object) -> None:
    (counter,) = counters(_story(LOOP.format(f"+= {term}"))).values()
    assert callable(kind) and all(kind(t) for t in counter.terms)


def test_a_share_is_no_count() -> None:
    (counter,) = counters(_story(LOOP.format("+= (x == y).float().mean()"))).values()
    assert not any(counts_matches(t) for t in counter.terms)


def test_what_is_divided_again_is_no_mean_yet() -> None:
    story = _story(LOOP.replace("len(loader)", "len(loader) / 3").format("+= x.sum()"))
    assert len(list(quotients(story))) == 1


@pytest.mark.parametrize(
    ("reset", "is_kept"), [("pass", True), ("n = 0", False), ("if epoch in known: n = 0", False)]
)
def test_a_sum_that_goes_on_over_epochs(reset: str, is_kept: bool) -> None:
    story = _story(f"n = 0\nfor epoch in range(3):\n    {reset}\n    for x in loader:\n"
                   "        n += x.sum()")  # fmt: skip
    (counter,) = counters(story).values()
    assert counter.carries_over(counter.events[0].loops[0]) is is_kept
