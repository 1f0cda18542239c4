"""Steps, bursts and periods are found wherever they stand, and noise is none of them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from traindx.analysis.courses.segments import bursts, lasting_step, period, segments
from traindx.model.run import Floats

COUNT = 800
TIME = np.linspace(0.0, 1.0, COUNT)
FALL = 2.0 * np.exp(-5 * TIME) + 1.0


def noisy(values: Floats, seed: int = 0, level: float = 0.02) -> Floats:
    return values + level * np.random.default_rng(seed).standard_normal(len(values))


@pytest.mark.parametrize("at", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_a_step_is_found_at_any_place_and_scale(at: float, factor: float) -> None:
    values = factor * noisy(np.ones(COUNT) + (at <= TIME))
    found = segments(values)
    assert len(found) == 2
    assert found[1].start == pytest.approx(at, abs=0.02)
    assert found[1].level == pytest.approx(2 * factor, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_noise_and_a_smooth_fall_have_no_steps(seed: int) -> None:
    assert len(segments(noisy(np.ones(COUNT), seed))) == 1
    assert len(segments(noisy(FALL, seed))) == 1


def test_steps_survive_subsampling() -> None:
    values = noisy(np.ones(COUNT) + (TIME >= 0.3) - 0.5 * (TIME >= 0.7))
    assert len(segments(values)) == len(segments(values[::3])) == 3


@pytest.mark.parametrize("at", [100, 400, 700])
def test_a_burst_that_recovers_leaves_nothing(at: int) -> None:
    values = noisy(FALL)
    values[at : at + 12] += 8.0
    (found,) = bursts(values)
    assert found.start == pytest.approx(at / COUNT, abs=0.02)
    assert found.height > 6.0 and found.left < 0.1


@pytest.mark.parametrize("seed", range(10))
def test_noise_does_not_burst(seed: int) -> None:
    assert not bursts(noisy(FALL, seed))


@pytest.mark.parametrize("cycles", [4, 8, 16])
def test_restarts_have_a_period(cycles: int) -> None:
    restarts = 1.0 + 0.5 * np.mod(TIME * cycles, 1.0)[::-1]
    assert period(noisy(restarts)) == pytest.approx(1 / cycles, rel=0.1)
    assert period(noisy(restarts)[::2]) == pytest.approx(1 / cycles, rel=0.1)


@pytest.mark.parametrize("seed", range(10))
def test_noise_has_no_period(seed: int) -> None:
    assert period(noisy(FALL, seed)) == 0.0


def test_a_million_points_take_less_than_a_few_seconds() -> None:
    values = noisy(np.interp(np.linspace(0, 1, 1_000_000), TIME, FALL))
    started = time.process_time()
    segments(values), bursts(values), period(values)
    assert time.process_time() - started < 8.0


@pytest.mark.parametrize("count", [1, 3, 7])
def test_few_points_are_one_segment(count: int) -> None:
    assert len(segments(np.arange(float(count)))) == 1
    assert not bursts(np.arange(float(count))) and period(np.arange(float(count))) == 0.0


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_a_step_up_lasts_or_is_made_good(at: float) -> None:
    low = noisy(2.0 * np.exp(-20 * TIME) + 0.5)
    lasting = np.where(at > TIME, low, 1.8 * low)
    assert lasting_step(lasting) is not None
    assert lasting_step(np.where((at > TIME) | (at + 0.1 < TIME), low, 1.8 * low)) is None
    anew = np.where(at > TIME, low, noisy(np.full(COUNT, 2.4)))
    assert lasting_step(anew) is None
    assert lasting_step(low) is None
