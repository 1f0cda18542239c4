"""A loss beside that of guessing."""

from math import log

import numpy as np

from traindx.analysis.metrics.chance import (
    causes_by_rate,
    classes_at_level,
    classes_by_accuracy,
    has_only_begun,
    is_line_from_chance,
    is_unbent_from_chance,
    learns,
    stays_at_level,
)
from traindx.examples import decay, flat, make_run
from traindx.model.findings import Strength
from traindx.model.run import Series

LINE = np.linspace(0.6937, 0.5941, 60)


def loss_of(values: object, **fields: object) -> Series:
    return make_run({"loss/train": values}, **fields).series["loss/train"]


def test_a_straight_line_leaves_the_level_of_guessing():
    assert is_line_from_chance(LINE, log(2)) and is_unbent_from_chance(LINE, log(2))
    for other in (decay(60, 0.69, 0.1, noise=0.0), LINE - 0.3):
        assert not is_line_from_chance(other, log(2))
        assert not is_unbent_from_chance(other, log(2))


def test_classes_are_known_from_a_setting_or_from_the_level():
    assert classes_at_level(make_run(), log(10))[0] == 10
    assert classes_at_level(make_run(), 1.9)[0] == 0
    assert classes_at_level(make_run(config={"num_classes": 100}), log(10))[0] == 0


def test_an_accuracy_of_a_guess_tells_the_classes():
    run = make_run({"accuracy/val": flat(6, 0.25, noise=0.01)})
    assert classes_by_accuracy(run, loss_of(flat(24, 1.4, noise=0.01)))[0] == 4
    assert classes_by_accuracy(run, loss_of(decay(24)))[0] == 0


def test_a_tiny_rate_explains_why_nothing_is_learnt():
    loss = loss_of(flat(20, 2.3))
    told = causes_by_rate(make_run({"lr": np.full(20, 1e-7)}), loss, log(10))
    assert told == {"lr-too-low": Strength.STRONG}
    assert causes_by_rate(make_run({"lr": np.full(20, 1e-3)}), loss, log(10)) == {}


def test_a_few_steps_are_only_the_beginning():
    assert has_only_begun(loss_of(flat(70, 0.69)))
    assert not has_only_begun(loss_of(flat(10, 0.69), axis="epoch"))


def test_a_fall_beyond_the_noise_is_learning():
    assert learns(loss_of(decay(50)))
    assert not learns(loss_of(flat(50, 2.3)))


def test_a_loss_that_never_left_its_level():
    assert stays_at_level(flat(100, 2.3, noise=0.01), 2.3)
    assert not stays_at_level(decay(100, 2.3, 1.0), 2.3)
