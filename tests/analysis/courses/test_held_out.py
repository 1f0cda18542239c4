"""Overfitting is told from what looks like it, at any scale and spacing."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.held_out import pairs_of
from traindx.examples import logged
from traindx.model.run import Floats

COUNT = 40
TIME = np.linspace(0.0, 1.0, COUNT)
TRAIN = 2.0 * np.exp(-5 * TIME) + 0.02


def noisy(values: Floats, seed: int, level: float = 0.02) -> Floats:
    shaken = values * (1 + level * np.random.default_rng(seed).standard_normal(len(values)))
    return np.asarray(shaken, dtype=np.float64)


def probability(train: Floats, val: Floats, **more: Floats) -> float:
    run = logged(loss_train=train, loss_val=val, axis="epoch", **more)
    return max(p.probability() for p in pairs_of(run))


def turned(at: float, rise: float) -> Floats:
    fall = 1.0 + np.exp(-6 * TIME)
    low = float(np.interp(at, TIME, fall))
    return np.where(at > TIME, fall, low * (1 + rise * (TIME - at) / (1 - at)))


@pytest.mark.parametrize("at", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_clear_rise_is_overfitting_wherever_it_begins(at: float, seed: int) -> None:
    val = noisy(turned(at, 0.9), seed)
    assert probability(noisy(TRAIN, seed), val) > 0.65


@pytest.mark.parametrize("seed", range(8))
def test_healthy_pairs_are_not(seed: int) -> None:
    train = noisy(TRAIN, seed)
    for val in (2.0 * np.exp(-5 * TIME) + 0.1, np.exp(-5 * TIME) + 0.8, np.exp(-9 * TIME) + 0.5):
        assert probability(train, noisy(val, seed, 0.03)) < 0.35


@pytest.mark.parametrize("factor", [1e-4, 1e5])
def test_scale_does_not_matter(factor: float) -> None:
    val = noisy(turned(0.3, 0.5), 1)
    own = probability(TRAIN, val)
    assert probability(factor * TRAIN, factor * val) == pytest.approx(own, abs=1e-6)


def test_a_loss_that_falls_in_neither_is_no_overfitting() -> None:
    rising = turned(0.3, 0.9)
    assert probability(rising, rising) < 0.35


def test_held_out_data_that_do_better_are_no_overfitting() -> None:
    assert probability(20 * TRAIN + 5.0, 0.1 * turned(0.3, 0.9)) < 0.35


def test_the_last_of_two_runs_in_one_log_is_judged() -> None:
    once, falls = turned(0.2, 0.9), 2.0 * np.exp(-7 * TIME) + 0.01
    run = logged(loss_train=np.tile(falls, 2), loss_val=np.tile(once, 2), axis="epoch")
    (pair,) = pairs_of(run)
    assert len(pair.val) == COUNT and pair.probability() > 0.65


def test_errors_stand_in_for_losses() -> None:
    run = logged(loss_train=TRAIN, rmse_train=TRAIN, rmse_val=turned(0.2, 0.9), axis="epoch")
    assert [p.val.name for p in pairs_of(run)] == ["rmse/val"]
