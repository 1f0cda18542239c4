"""No progress, no bottom, up with the rate: each is told from its healthy neighbour."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.loss_courses import (
    follows_the_rate,
    has_no_bottom,
    high_for_its_accuracy,
    jump_without_validation,
    settled_since,
    stands_still,
)
from traindx.examples import decay, flat, logged
from traindx.model.run import Series

TIME = np.linspace(0.0, 1.0, 200)


def loss(values: np.ndarray) -> Series:
    return logged(loss_train=values).series["loss/train"]


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("seed", range(5))
def test_standing_still(factor: float, seed: int) -> None:
    assert stands_still(loss(factor * flat(80, 2.3, noise=0.01, seed=seed))) is not None
    assert stands_still(loss(factor * decay(80, seed=seed))) is None


@pytest.mark.parametrize("power", [2, 3, 5])
def test_a_fall_without_bottom_quickens(power: int) -> None:
    assert has_no_bottom(1.0 - 50 * TIME**power)
    assert not has_no_bottom(3.0 - 8 * TIME)
    assert not has_no_bottom(3.0 - 8 * np.sqrt(TIME))
    assert not has_no_bottom(decay(200))


def test_a_loss_that_follows_its_rate() -> None:
    rate = np.concatenate([np.linspace(0.1, 1.0, 50), np.linspace(1.0, 0.01, 150)]) * 3e-3
    broken = logged(lr=rate, loss_train=1.0 + 300 * rate + 0.4 * TIME)
    assert follows_the_rate(broken) is not None
    assert follows_the_rate(logged(lr=rate, loss_train=decay(200))) is None
    assert follows_the_rate(logged(lr=np.full(200, 1e-3), loss_train=1.0 + TIME)) is None


def test_right_and_never_sure() -> None:
    right = np.linspace(0.05, 0.7, 40)
    assert high_for_its_accuracy(np.linspace(4.1, 3.5, 40), right)
    assert not high_for_its_accuracy(np.linspace(4.1, 1.5, 40), right)
    assert not high_for_its_accuracy(np.linspace(0.69, 0.6, 40), right)


@pytest.mark.parametrize("at", [1, 20, 45])
def test_a_jump_that_validation_does_not_know(at: int) -> None:
    values = np.where(np.arange(60) < at, 1.4, 13.0) * flat(60, 1.0, noise=0.02)
    assert jump_without_validation(loss(values), loss(flat(9, 4.0, noise=0.01))) == at
    assert jump_without_validation(loss(values), loss(np.linspace(4.0, 9.0, 9))) is None


def test_what_has_settled() -> None:
    assert settled_since(np.append(decay(50), np.full(50, 0.4))) is not None
    assert settled_since(decay(100)) is None
