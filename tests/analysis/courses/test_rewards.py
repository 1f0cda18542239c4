"""Rewards that rise are told from those that do not, at any scale and length."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.rewards import (
    certain_while_poor,
    drift,
    explains_nothing,
    grows,
    is_at_its_ceiling,
    is_flat,
    is_from_the_start,
    is_left_behind,
    is_without_signal,
)
from traindx.examples import logged, make_run
from traindx.model.run import Floats, Series

TIME = np.linspace(0.0, 1.0, 300)


def reward(values: Floats, **more: Floats) -> Series:
    return logged(reward_train=values, **more).series["reward/train"]


def noisy(values: Floats, seed: int, level: float) -> Floats:
    return values + level * np.random.default_rng(seed).standard_normal(len(values))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e4])
def test_rising_is_not_flat_and_flat_is(seed: int, factor: float) -> None:
    rising = factor * noisy(-100 + 150 * TIME, seed, 20.0)
    flat = factor * noisy(np.full(300, -103.0), seed, 3.0)
    assert not is_flat(reward(rising)) and is_flat(reward(flat))
    assert not is_left_behind(reward(rising)) and not is_left_behind(reward(flat))


@pytest.mark.parametrize("top", [0.2, 0.5, 0.7])
def test_a_best_that_is_left_is_seen_wherever_it_stands(top: float) -> None:
    tent = np.where(top > TIME, TIME / top, 1 - 0.9 * (TIME - top) / (1 - top))
    assert is_left_behind(reward(noisy(200 * tent, 0, 5.0)))


def test_zeros_have_no_signal() -> None:
    run = logged(reward_train=np.zeros(50))
    assert is_without_signal(run, run.series["reward/train"])
    sparse = np.where(np.arange(200) % 60 == 7, 1.0, 0.0)
    run = logged(reward_train=sparse)
    assert is_without_signal(run, run.series["reward/train"])
    found = np.concatenate([sparse, np.ones(100)])
    run = logged(reward_train=found)
    assert not is_without_signal(run, run.series["reward/train"])


def test_a_ceiling_and_a_tail() -> None:
    assert is_at_its_ceiling(reward(np.full(40, 500.0)))
    tail = logged(reward_train=np.ones(20), steps=4e6 + np.arange(20.0))
    assert not is_from_the_start(tail.series["reward/train"])


def test_the_critic() -> None:
    critic = make_run({"other/explained_variance": np.zeros(40), "loss/train/value": TIME})
    assert explains_nothing(critic.series["other/explained_variance"])
    assert not explains_nothing(reward(TIME))
    assert grows(reward(np.geomspace(1.0, 90.0, 40))) and not grows(reward(1.0 + TIME))


def test_certain_and_poor_at_any_time() -> None:
    for first in (20, 120, 220):
        entropy = np.full(300, 0.6)
        entropy[first : first + 60] = 1e-6
        poor = np.full(300, 100.0)
        poor[first : first + 60] = 20.0
        assert certain_while_poor(logged(entropy_train=entropy, reward_train=poor)) is not None
        rich = np.full(300, 100.0)
        assert certain_while_poor(logged(entropy_train=entropy, reward_train=rich)) is None


def test_drift_is_far_and_not_a_small_policy_step() -> None:
    far = np.concatenate([np.geomspace(0.002, 3.0, 40), np.full(40, 3.0)])
    assert drift(logged(kl_train=far)) is not None
    assert drift(logged(kl_train=np.full(80, 0.01))) is None
    assert drift(make_run({"kl/train/approx": far})) is None
