"""A course is the same at any scale, spacing and number of points."""

from __future__ import annotations

import time

import numpy as np
import pytest

from traindx.analysis.courses.course import (
    MetricCourse,
    constant_share,
    course_of,
    is_counted,
    persistence,
)
from traindx.model.run import Floats

RNG = np.random.default_rng(0)
TIME = np.linspace(0.0, 1.0, 600)
NOISE = RNG.standard_normal(600)
SHAPES = {
    "falls": 2.0 * np.exp(-5 * TIME) + 0.3 + 0.01 * NOISE,
    "turns": 1.0 + 4 * (TIME - 0.4) ** 2 + 0.01 * NOISE,
    "rises": 1.0 + TIME + 0.01 * NOISE,
    "heavy tails": np.exp(-3 * TIME) + 0.3 + 0.02 * RNG.standard_t(2, 600),
    "periodic": np.exp(-3 * TIME) + 0.5 + 0.1 * np.sin(40 * TIME) + 0.01 * NOISE,
}


def figures(course: MetricCourse) -> list[float]:
    return [course.gain, course.regret, course.lost_share, course.best_at]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("factor", [1e-9, 0.1, 7.0, 1e12])
def test_scale_does_not_matter(name: str, factor: float) -> None:
    own, other = course_of(SHAPES[name]), course_of(factor * SHAPES[name])
    assert figures(other) == pytest.approx(figures(own), abs=1e-6)
    assert other.sure_gain == pytest.approx(own.sure_gain, rel=1e-6)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("every", [2, 5])
def test_subsampling_hardly_matters(name: str, every: int) -> None:
    own, other = course_of(SHAPES[name]), course_of(SHAPES[name][::every])
    assert figures(other)[:2] == pytest.approx(figures(own)[:2], abs=0.12)


@pytest.mark.parametrize("name", SHAPES)
def test_an_accuracy_is_its_mirror_image(name: str) -> None:
    loss = SHAPES[name]
    own, other = course_of(loss), course_of(-loss, higher_is_better=True)
    assert figures(other) == pytest.approx(figures(own))
    assert other.told(other.best) == pytest.approx(-own.best)


@pytest.mark.parametrize("at", [0.15, 0.5, 0.8])
def test_a_turn_is_placed_wherever_it_stands(at: float) -> None:
    values = np.abs(TIME - at) + 0.2 + 0.002 * NOISE
    assert course_of(values).best_at == pytest.approx(at, abs=0.04)


def test_what_was_never_gained_is_lost_whole() -> None:
    assert course_of(np.linspace(1.0, 3.0, 50)).lost_share == 2.0
    assert course_of(np.linspace(3.0, 1.0, 50)).lost_share < 0.1
    assert course_of(np.full(50, 0.7)).lost_share == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_points_are_described_too(count: int) -> None:
    course = course_of(np.linspace(2.0, 1.0, count))
    assert np.isfinite(figures(course)).all()


def test_persistence_and_constancy() -> None:
    assert persistence(np.arange(9.0)) == 1.0 and persistence(-np.arange(9.0)) == -1.0
    assert constant_share(np.array([1.0, 1.0, 2.0, 1.0])) == 0.75
    assert is_counted(np.array([0.0, 0.5, 1.0] * 9)) and not is_counted(SHAPES["falls"])


def test_a_million_points_take_less_than_a_few_seconds() -> None:
    values: Floats = np.tile(SHAPES["falls"], 1700)[:1_000_000]
    started = time.process_time()
    course_of(values)
    assert time.process_time() - started < 5.0
