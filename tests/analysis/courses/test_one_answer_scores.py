"""One answer for all inputs leaves its mark in scores, however they are averaged."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.one_answer_scores import one_answer, same_scores, stuck_score
from traindx.analysis.courses.references import (
    averages_of_one_answer,
    excess_over_guess,
    shares_of_one_answer,
)
from traindx.examples import make_run

RNG = np.random.default_rng(0)


def scores(predicted: np.ndarray, true: np.ndarray, classes: int) -> tuple[float, float, float]:
    """Return accuracy, macro F1 and weighted F1, computed the long way."""
    f1, weights = [], []
    for c in range(classes):
        hits = float(np.sum((predicted == c) & (true == c)))
        f1.append(2 * hits / max(1.0, float(np.sum(predicted == c) + np.sum(true == c))))
        weights.append(float(np.mean(true == c)))
    return float(np.mean(predicted == true)), float(np.mean(f1)), float(np.dot(f1, weights))


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_one_answer_is_recognised_by_every_average(classes: int) -> None:
    true = RNG.integers(0, classes, 2000)
    accuracy, macro, weighted = scores(np.zeros(2000, dtype=int), true, classes)
    for f1 in (macro, weighted):
        assert averages_of_one_answer(np.array([accuracy]), np.array([f1]))


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
@pytest.mark.parametrize("seed", range(5))
def test_a_model_that_tells_classes_apart_is_not(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, 2000)
    guess = rng.random(2000) < 0.5
    predicted = np.where(guess, rng.integers(0, classes, 2000), true)
    accuracy, macro, weighted = scores(predicted, true, classes)
    run = make_run({"accuracy/val": [accuracy] * 4, "f1/val": [macro] * 4})
    assert one_answer(run) is None
    run = make_run({"accuracy/val": [accuracy] * 4, "f1/val": [weighted] * 4})
    assert one_answer(run) is None


def test_percent_is_read_as_a_share() -> None:
    assert one_answer(make_run({"accuracy/val": [68.21] * 5, "f1/val": [81.1] * 5})) is not None


def test_recalls_of_one_answer() -> None:
    assert shares_of_one_answer(np.array([0.0, 1.0, 0.0]))
    assert not shares_of_one_answer(np.array([0.2, 1.0, 0.0]))
    assert not shares_of_one_answer(np.array([1.0]))


def test_a_guess_has_no_excess() -> None:
    assert excess_over_guess(np.log(10), 10) == pytest.approx(0.0)


def test_stuck_and_same() -> None:
    stuck = make_run({"accuracy/val": np.where(np.arange(20) == 5, 0.61, 0.5268)})
    assert stuck_score(stuck) is not None
    moving = make_run({"accuracy/val": 0.5 + 0.01 * RNG.random(20)})
    assert stuck_score(moving) is None
    values = RNG.random(12)
    assert list(same_scores(make_run({"cer/train": values, "cer/val": values}), 6))
    assert not list(same_scores(make_run({"cer/train": values, "cer/val": values + 1e-9}), 6))
