"""The arithmetic of deciding, on made-up levels: help, noise, and what is worth anybody's while."""

from __future__ import annotations

import math

import pytest

from traindx.experiments.probes.decisions import (
    Comparison,
    band,
    effect_of,
    is_promising,
    matters,
    merit,
    pooled_noise,
)
from traindx.model.probes import Effect


def accuracy(before: list[float], after: list[float], count: int = 2000) -> Comparison:
    return Comparison(
        dict(enumerate(before, 1)), dict(enumerate(after, 1)), higher_is_better=True, count=count
    )


def loss(before: list[float], after: list[float], constant: float | None = 1.0) -> Comparison:
    return Comparison(dict(enumerate(before, 1)), dict(enumerate(after, 1)), constant=constant)


def test_a_clear_gain_with_every_seed_helps() -> None:
    effect, noise = effect_of(accuracy([0.60, 0.62], [0.81, 0.80]), pooled=0.01)
    assert effect is Effect.HELPS
    assert 0 < noise < 0.1


def test_a_gain_of_one_seed_alone_does_not() -> None:
    effect, _ = effect_of(accuracy([0.60, 0.62], [0.81, 0.61]), pooled=0.01)
    assert effect is Effect.NONE


def test_one_seed_leaves_even_a_large_gain_open() -> None:
    effect, _ = effect_of(accuracy([0.60], [0.90]), pooled=0.01)
    assert effect is Effect.OPEN


def test_a_gain_within_the_noise_of_other_changes_is_none() -> None:
    effect, _ = effect_of(accuracy([0.60, 0.62], [0.66, 0.67]), pooled=0.06)
    assert effect is Effect.NONE


def test_a_loss_with_every_seed_hurts() -> None:
    effect, _ = effect_of(loss([0.20, 0.21], [0.60, 0.55]), pooled=0.02)
    assert effect is Effect.HURTS


def test_a_small_held_out_set_widens_the_band() -> None:
    few = band(accuracy([0.9, 0.9], [0.93, 0.93], count=50), 0.002)
    many = band(accuracy([0.9, 0.9], [0.93, 0.93], count=5000), 0.002)
    assert few > 3 * many


@pytest.mark.parametrize(
    ("before", "after", "is_worth_it"),
    [
        (0.0105, 0.0101, False),  # near the floor of the noise
        (0.0008, 0.0002, False),  # next to nothing is left of the targets' variance
        (0.0500, 0.0100, True),
        (0.3000, 0.2800, False),  # less than a sixth of it
        (0.3000, 0.2000, True),
    ],
)
def test_a_loss_matters_by_its_share_and_by_its_span(
    before: float, after: float, is_worth_it: bool
) -> None:
    assert matters(loss([before], [after])) is is_worth_it


def test_beside_a_score_a_loss_has_to_fall_further() -> None:
    comparison = loss([0.25], [0.22], constant=1.8)
    assert not matters(comparison, beside_score=True)
    assert matters(loss([0.66], [0.18], constant=1.8), beside_score=True)


def test_a_score_near_its_top_gains_little_that_matters() -> None:
    assert not matters(accuracy([0.990], [0.995]))
    assert matters(accuracy([0.90], [0.95]))


def test_a_percentage_is_judged_as_one() -> None:
    assert not matters(accuracy([90.0], [90.5]))
    assert matters(accuracy([60.0], [80.0]))


def test_a_run_that_ends_as_nan_gains_by_any_number() -> None:
    comparison = loss([math.inf, math.inf], [0.3, 0.4])
    assert matters(comparison)
    assert is_promising(comparison)
    assert effect_of(comparison, 0.01)[0] is Effect.HELPS


def test_a_change_that_breaks_a_run_hurts() -> None:
    effect, _ = effect_of(loss([0.3, 0.4], [math.inf, math.nan]), pooled=0.01)
    assert effect is Effect.HURTS


def test_noise_is_pooled_over_changes_and_ignores_single_seeds() -> None:
    steady = accuracy([0.5, 0.5], [0.6, 0.6])
    shaky = accuracy([0.5, 0.5], [0.7, 0.5])
    assert pooled_noise([accuracy([0.5], [0.9])]) == 0
    assert 0 < pooled_noise([steady, shaky, shaky]) < 0.2


def test_changes_are_ranked_by_what_is_left_to_gain() -> None:
    assert merit(accuracy([0.6], [0.8])) == pytest.approx(0.5)
    assert merit(loss([0.4], [0.3])) == pytest.approx(0.25)
    assert merit(loss([], [])) == -math.inf
