"""The numerics, judged by how often they cry wolf on healthy curves and miss broken ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from traindx.analysis.curves import (
    bucket_edges,
    curve,
    divergence,
    gone_since,
    grows_steadily,
    is_broken_curve,
    isolated_spikes,
    noise,
    only_rises,
    rank_z,
    running_median,
    since,
    slope_z,
    wander,
)
from traindx.examples import decay, flat, join
from traindx.model.run import Floats

LENGTHS = (6, 8, 10, 15, 20, 30, 50, 100, 300, 1000)
NOISES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)


def white(count: int, amount: float, seed: int) -> Floats:
    return decay(count, 3.0, 0.5, noise=amount, seed=seed)


def level(count: int, amount: float, seed: int) -> Floats:
    return flat(count, 2.0, noise=amount, seed=seed)


def heavy_tailed(count: int, amount: float, seed: int) -> Floats:
    shocks = np.random.default_rng(seed).standard_t(2, count)
    return decay(count, 3.0, 1.0, noise=0.0) * np.exp(amount * shocks)


def periodic(count: int, amount: float, seed: int) -> Floats:
    waves = np.sin(np.arange(count) / count * 2 * np.pi * (2 + seed % 10))
    return decay(count, 3.0, 2.0, noise=0.0) * (1 + amount * waves)


def averaged(count: int, amount: float, seed: int) -> Floats:
    """A loss that its author logs as a running mean, as many do: its noise is slow."""
    shocks = np.random.default_rng(seed).standard_normal(count)
    for i in range(1, count):
        shocks[i] = 0.9 * shocks[i - 1] + np.sqrt(1 - 0.81) * shocks[i]
    return decay(count, 3.0, 1.0, noise=0.0) * (1 + 0.5 * amount * shocks)


@pytest.mark.parametrize("healthy", [white, level, heavy_tailed, periodic, averaged])
def test_healthy_curves_hardly_ever_diverge(healthy: object) -> None:
    alarms = 0
    for seed in range(5):
        for count in LENGTHS:
            for amount in NOISES:
                found = divergence(healthy(count, amount, 1000 * seed + count))  # type: ignore[operator]
                alarms += found is not None and not found.is_recovering
    assert alarms <= 3  # of 300


@pytest.mark.parametrize("factor", [1.15, 1.5, 3.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_lasting_rise_is_found_where_it_begins(factor: float, seed: int) -> None:
    good = decay(300, 6.0, 4.0, noise=0.01, seed=seed)
    ramp = np.geomspace(1.0, factor, 60)
    bad = flat(160, 4.0, noise=0.01, seed=seed) * join(ramp, np.full(100, factor))
    found = divergence(join(good, bad))
    assert found is not None and not found.is_recovering
    assert 280 <= found.onset <= 345
    assert found.end_value == pytest.approx(4.0 * factor, rel=0.05)


def test_a_run_on_its_way_back_is_recovering() -> None:
    found = divergence(join(decay(200, 4.0, 1.0, noise=0.01), decay(80, 3.5, 1.4, noise=0.01)))
    assert found is None or found.is_recovering


def test_few_points_show_only_the_obvious() -> None:
    assert divergence(np.array([1.0, 0.9, 1.5])) is None
    assert divergence(np.array([2.0, 40.0, 900.0])) is not None
    assert divergence(np.array([1.0])) is None
    assert divergence(np.array([])) is None


def test_noise_is_blind_to_trend_and_outliers() -> None:
    values = np.linspace(100.0, 0.0, 500) + np.random.default_rng(0).standard_normal(500)
    values[[50, 250, 400]] += 1e6
    assert noise(values) == pytest.approx(1.0, rel=0.2)


def test_slow_noise_is_seen_at_its_own_scale() -> None:
    shocks = np.random.default_rng(0).standard_normal(2000)
    slow = np.convolve(shocks, np.ones(40) / 40, "valid")
    assert wander(slow) > 5 * noise(slow)


def test_rank_and_slope_statistics() -> None:
    rising = np.arange(50.0)
    assert slope_z(rising) > 5 and slope_z(-rising) < -5
    assert abs(slope_z(np.zeros(50))) < 0.1
    assert rank_z(rising, rising + 100) > 5
    assert abs(rank_z(rising, rising)) < 0.1


finite = st.floats(-1e12, 1e12, allow_nan=False)


@given(arrays(np.float64, st.integers(1, 120), elements=finite))
@settings(max_examples=150, deadline=None)
def test_no_curve_breaks_the_numerics(values: Floats) -> None:
    described = curve(values)
    assert np.isfinite(described.level).all()
    found = divergence(values)
    if found is not None:
        assert 0 <= found.best < found.onset < len(values)


@given(st.integers(1, 5000), st.integers(1, 900))
def test_buckets_cover_every_point_once(count: int, most: int) -> None:
    edges = bucket_edges(count, most)
    assert edges[0] == 0 and edges[-1] == count
    assert (np.diff(edges) > 0).all() and len(edges) <= most + 1


@given(arrays(np.float64, st.integers(3, 60), elements=finite), st.sampled_from([3, 5, 9]))
def test_running_median_stays_within_the_values(values: Floats, window: int) -> None:
    smooth = running_median(values, window)
    assert len(smooth) == len(values)
    assert smooth.min() >= values.min() and smooth.max() <= values.max()


def test_steady_growth_goes_on_in_every_third() -> None:
    steps = np.arange(30.0)
    assert grows_steadily(steps, 1.0 + 0.02 * steps, 0.1, 0.2)
    assert not grows_steadily(steps, 1.0 + 0.5 * (1.0 - 0.8**steps), 0.1, 0.2)  # it fills up
    assert not grows_steadily(steps, 1.0 + 0.1 * (steps % 10), 0.1, 0.2)  # it is given back
    assert not grows_steadily(steps, 1.0 + 0.001 * steps, 0.1, 0.2)


def test_what_was_gained_is_a_part_of_the_first_level():
    assert curve(np.linspace(2.0, 1.0, 400)).gained == pytest.approx(0.5, abs=0.05)
    assert np.isnan(curve(np.zeros(40)).gained)


def test_points_that_are_so_up_to_the_end():
    assert since(np.array([True, False, True, True])) == 2
    assert since(np.array([True, True])) == 0
    assert since(np.array([True, False])) == 2


def test_a_spike_stands_alone():
    values = decay(400)
    assert not len(isolated_spikes(values))
    values[150] = 9.0
    assert isolated_spikes(values).tolist() == [150]


def test_a_curve_that_only_rises():
    assert only_rises(2.3 * np.exp(np.linspace(0.0, 3.0, 100)))
    assert not only_rises(join(decay(50), 2.3 * np.exp(np.linspace(0.0, 1.0, 50))))


def test_values_that_are_gone_for_good():
    assert gone_since(np.geomspace(1.0, 1e-6, 60)) is not None
    assert gone_since(np.geomspace(1.0, 0.1, 60)) is None


def test_a_broken_curve_is_nan_or_diverges():
    assert is_broken_curve(np.array([1.0, np.nan]))
    assert is_broken_curve(2.0 * np.exp(np.arange(40) / 8.0))
    assert not is_broken_curve(decay(40))
