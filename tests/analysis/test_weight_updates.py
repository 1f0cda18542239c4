"""How far the steps of a recorded process move its weights."""

from __future__ import annotations

from math import log

import pytest

from traindx.analysis.recordings.traces import traces_of
from traindx.analysis.recordings.weight_updates import (
    growth,
    guess_loss,
    travelled,
    update_ratios,
    uses_only,
)
from traindx.examples import sampled, watched, weights
from traindx.model.recording import LossInput, Optimizer

NAMES = weights("0.weight", "1.weight")


def test_updates_are_read_by_sample():
    process = watched(*NAMES, count=3, update_ratios=lambda i: (0.1 * i, 0.3))
    ratios = update_ratios(traces_of(process), max)
    assert [s.step for s, _ in ratios] == [0, 10, 20]
    assert [r for _, r in ratios] == [0.3, 0.3, 0.3]


def test_growth_is_that_of_the_middle_matrix():
    process = watched(*weights("a", "b", "c"), weight_norms=lambda i: (1.0, 1.0 + i, 9.0))
    assert growth(traces_of(process)) == 1.0
    assert growth([t for t in traces_of(process) if t.name == "b"]) == 6.0
    assert growth(traces_of(process), enough=99) == 1.0


def test_the_way_is_that_of_the_matrix_that_moves_most():
    traces = traces_of(watched(*NAMES, update_ratios=(0.01, 0.02)))
    assert travelled(traces, steps=100, enough=4) == pytest.approx(2.0)
    assert travelled(traces, steps=100, enough=99) is None


def test_kinds_of_optimizers():
    process = watched(*NAMES, optimizer=Optimizer(2, type="AdamW"))
    assert uses_only(process, "adam", "lion")
    assert not uses_only(process, "sgd")
    assert not uses_only(sampled(2), "adam")


def test_the_loss_of_a_guess_is_known_where_one_cross_entropy_is_all():
    given = LossInput("cross_entropy", classes=4)
    assert guess_loss(sampled(3, losses=(given,))) == log(4)
    assert guess_loss(sampled(3, losses=(given, given))) is None
    assert (
        guess_loss(sampled(3, losses=lambda i: (LossInput("cross_entropy", classes=i + 2),)))
        is None
    )
