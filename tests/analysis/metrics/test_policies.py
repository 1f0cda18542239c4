"""The entropy and the reward of a policy."""

from math import log

import numpy as np

from traindx.analysis.metrics.policies import (
    cite_runaway_kl,
    does_reward_rise,
    entropy_gone_since,
    has_reached_best,
    is_random_choice,
    is_reward_lost,
    policy_entropy,
    reward_lost_since,
)
from traindx.examples import make_run
from traindx.model.run import Series

NOISE = np.random.default_rng(0).standard_normal(100)
UP_AND_DOWN = np.concatenate(
    [np.full(12, 5.0), np.linspace(5, 80, 28), np.linspace(80, 4, 30), np.full(30, 4.0)]
)


def series(values: object, name: str = "reward/train") -> Series:
    return make_run({name: values}).series[name]


def test_a_negated_entropy_is_one():
    found = policy_entropy(make_run({"loss/train/entropy": [-1.0, -0.5]}))
    assert found is not None and found.values.tolist() == [1.0, 0.5]
    assert policy_entropy(make_run({"loss/train/entropy": [-1.0, 0.5]})) is None


def test_a_reward_is_lost_once_it_was_gained():
    found = reward_lost_since(UP_AND_DOWN + NOISE)
    assert found is not None and 30 <= found[0] <= 45
    assert reward_lost_since(np.linspace(5, 80, 100) + NOISE) is None


def test_a_divergence_from_the_reference_runs_away():
    away = np.concatenate([np.full(60, 0.01), np.geomspace(0.01, 40.0, 40)])
    assert cite_runaway_kl(make_run({"kl/train": away}))
    assert cite_runaway_kl(make_run({"kl/train": np.full(100, 0.01)})) == ()


def test_an_entropy_that_is_gone_costs_the_reward():
    entropy = series(np.concatenate([np.linspace(1.4, 0.01, 20), np.full(80, 0.005)]), "entropy/a")
    gone = entropy_gone_since(entropy, 1.4)
    assert gone is not None and gone < 25
    assert is_reward_lost(10.0 + NOISE, gone / 100, 100)
    assert not is_reward_lost(np.linspace(10, 200, 100), gone / 100, 100)
    assert entropy_gone_since(series(np.full(9, 1.4), "entropy/a"), 1.4) is None


def test_choosing_at_random_has_the_entropy_of_its_actions():
    assert is_random_choice(np.full(12, 0.99 * log(2)))
    assert not is_random_choice(np.full(12, 0.5))
    assert not is_random_choice(np.linspace(0.69, 0.4, 12))


def test_a_reward_that_rises():
    assert does_reward_rise(np.linspace(10.0, 60.0, 12))
    assert not does_reward_rise(np.full(12, 10.0))
    assert has_reached_best(series([0.2, 0.6, *[1.0] * 18]))
    assert not has_reached_best(series([0.0] * 20))
