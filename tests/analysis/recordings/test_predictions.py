"""Predictions beside the targets that a loss compares them with."""

from dataclasses import replace
from math import log

import pytest

from traindx.analysis.recordings.observations import terms_of
from traindx.analysis.recordings.predictions import (
    are_probabilities,
    are_raw_targets,
    dominated,
    has_large_targets,
    is_class_number,
    is_clipped,
    is_constant_column,
    is_far_below_target,
    is_far_from_learnt,
    is_of_the_batch,
    largest_cost,
    outer_broadcast,
    output_count,
    says_nothing,
    size_of,
    targets_exceed_range,
)
from traindx.examples import sampled, watched
from traindx.model.recording import LossInput, Parameter, Sample, Summary

COLUMN = Summary(shape=(32, 1), low=0.0, high=0.0, mean=5.0, std=0.0)
TARGET = Summary(shape=(32, 1), dtype="float32", low=-3.0, high=3.0, mean=0.0, std=1.0)


def test_clipped_and_constant_predictions_meet_targets_that_vary():
    given = LossInput("mse_loss", "relu", COLUMN, TARGET)
    assert is_clipped(given) and is_constant_column(given)
    assert not is_clipped(replace(given, producer="addmm"))
    flat = replace(given, target=replace(TARGET, std=0.0))
    assert not is_clipped(flat) and not is_constant_column(flat)


def test_targets_beyond_the_range_of_the_last_operation():
    inside = Summary(shape=(32, 1), low=0.1, high=0.9)
    wide = replace(TARGET, low=0.0, high=255.0, std=80.0)
    assert targets_exceed_range(LossInput("mse_loss", "sigmoid", inside, wide))
    assert not targets_exceed_range(LossInput("mse_loss", "addmm", inside, wide))


def test_raw_targets_are_in_the_thousands():
    raw = LossInput("mse_loss", "", COLUMN, replace(TARGET, mean=2e5))
    (term,) = terms_of(sampled(3, losses=(raw,)), "mse_loss")
    assert size_of(raw.target) == 2e5 and size_of(None) == 0.0
    assert are_raw_targets(term) and is_far_below_target(raw)
    assert has_large_targets(sampled(3, losses=(raw,)))
    assert not has_large_targets(sampled(3, losses=(replace(raw, target=TARGET),)))


def test_class_numbers_are_whole_and_come_with_the_batch():
    labels = Summary("1", (50,), "int64", "cpu", 0.0, 9.0, distinct=10)
    given = LossInput("mse_loss", "max", Summary(shape=(50,)), replace(labels, dtype="float32"))
    assert is_class_number(Sample(1, 0, batch=(labels,)), given)
    assert not is_class_number(Sample(1, 0), given)
    model = watched(Parameter("a", (64, 8)), Parameter("b", (10, 64))).models[0]
    assert output_count(model) == 10


def test_a_column_and_a_row_make_a_square():
    given = LossInput("mse_loss", broadcast=((32, 1), (32,), (32, 32)))
    met = outer_broadcast(given)
    assert met == ((32, 1), (32,), (32, 32))
    assert outer_broadcast(LossInput("mse_loss", broadcast=((32, 1), (1, 32), (32, 32)))) is None
    (term,) = terms_of(sampled(2, losses=(given,), batch=(Summary("0", (32, 8)),)), "mse_loss")
    assert is_of_the_batch(term, met)


def test_what_the_labels_can_cost_is_bounded():
    def sample(loss: float, low: float, high: float) -> Sample:
        given = LossInput("cross_entropy", "", Summary(shape=(50, 10), low=low, high=high))
        return Sample(1, 0, loss=loss, losses=(replace(given, classes=10),))

    uniform = sample(2.4, -log(10) - 0.01, -log(10) + 0.01)
    assert says_nothing(uniform.losses[0])
    assert largest_cost(sample(900.0, -2.6, -2.0), uniform) == pytest.approx(2.6)
    assert not says_nothing(sample(1.0, -5.0, -0.1).losses[0])


def test_rows_that_sum_to_one_are_probabilities():
    given = LossInput("cross_entropy", rows_sum_to_one=True, classes=10)
    assert are_probabilities(terms_of(sampled(3, losses=(given,)), "cross_entropy")[0])
    assert not are_probabilities(terms_of(sampled(1, losses=(given,)), "cross_entropy")[0])


def test_a_cross_entropy_that_is_far_from_learnt():
    given = (LossInput("cross_entropy", classes=10),)
    assert is_far_from_learnt([Sample(1, 0, loss=2.0, losses=given)])
    assert not is_far_from_learnt([Sample(1, 0, loss=0.1, losses=given)])


def test_a_term_that_another_one_rules():
    def ruled(losses: tuple[float, ...], width: float) -> bool:
        def given(i: int) -> tuple[LossInput]:
            low, high = (-log(10) + sign * (width if i else 0.3) for sign in (-1, 1))
            prediction = Summary(shape=(50, 10), low=low, high=high)
            return (LossInput("cross_entropy", "addmm", prediction, classes=10),)

        made = sampled(
            len(losses), step=lambda i: 20 * i, loss=lambda i: losses[i], losses=given
        )  # fmt: skip
        return dominated(made) is not None

    assert ruled((900.0, 60.0, 9.0, 4.0, 2.6, 2.4), 0.01)
    assert not ruled((900.0, 60.0, 9.0, 4.0, 2.6, 2.4), 2.0)
    assert not ruled((2.4, 2.4, 2.3, 2.3, 2.3, 2.3), 0.01)
