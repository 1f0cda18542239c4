"""Values that a log repeats in every digit."""

import numpy as np

from traindx.analysis.metrics.repeats import (
    by_epoch,
    by_step,
    digits_of,
    first_repeat,
    has_learnt_before,
    has_loss_fallen,
    has_no_gradient,
    stands_since,
    usual_value,
)
from traindx.examples import decay, join, make_run
from traindx.model.run import Series


def series(values: object, **fields: object) -> Series:
    return make_run({"loss/train": values}, **fields).series["loss/train"]


def test_one_point_of_every_step_and_epoch():
    assert by_step(series([3.0, 2.0, 1.0], steps=[0, 0, 1])).values.tolist() == [2.0, 1.0]
    found = by_epoch(series([3.0, 2.0, 1.0], epochs=[0.0, 0.5, 1.0]))
    assert found is not None and found.values.tolist() == [2.0, 1.0]
    assert by_epoch(series([3.0, 2.0])) is None


def test_nearly_all_points_have_one_value():
    values = np.where(np.arange(120) % 30 == 29, 0.2, 0.4)
    assert set(usual_value(series(values)).values.tolist()) == {0.4}
    assert len(usual_value(series(decay(120)))) == 0


def test_digits_are_those_that_were_written():
    assert digits_of(series([0.25, 0.1234])) == 4


def test_a_value_repeats_to_the_end():
    assert first_repeat(series(join(decay(9), np.full(11, 0.06503114849)))) == 9
    assert first_repeat(series(np.full(16, 0.69))) is None
    assert first_repeat(series(decay(20))) is None


def test_what_a_loss_that_stands_still_is_held_against():
    assert has_no_gradient(make_run({"grad_norm": np.zeros(12)}))
    assert not has_no_gradient(make_run({"grad_norm": np.ones(12)}))
    assert has_loss_fallen(make_run({"loss/train": [0.7, 0.6, 0.5, 0.5, 0.5, 0.5]}))
    assert not has_loss_fallen(make_run({"loss/train": np.full(8, 0.7)}))


def test_a_loss_that_shows_one_value_for_most_of_the_run():
    def since(*values: float) -> int | None:
        return stands_since(make_run({"loss/train": values}).series["loss/train"], 5, 4)

    assert since(2.3041, *[2.3025] * 9) == 1
    assert since(4.6, *[2.3025] * 9) is None  # learnt first
    assert since(*[2.3] * 10) is None  # few digits
    assert since(*[2.3041, 2.2986] * 4, 2.3025) is None


def test_a_huge_loss_that_moves_in_its_last_digits_has_not_learnt() -> None:
    still = make_run({"loss/val": [2.68802e8, 2.68801e8, *[2.688e8] * 9]}).series["loss/val"]
    learnt = make_run({"loss/val": [0.139, 0.09, *[0.065] * 9]}).series["loss/val"]
    assert not has_learnt_before(still, 2)
    assert has_learnt_before(learnt, 2)
