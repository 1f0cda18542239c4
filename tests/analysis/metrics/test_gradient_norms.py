"""Logged gradient norms."""

import numpy as np
import pytest

from traindx.analysis.metrics.gradient_norms import (
    cite_clip_off,
    clip_in_use,
    does_loss_fall,
    is_optimizer_adaptive,
    levels_around,
    onset_step,
    spike_near,
)
from traindx.examples import decay, flat, join, make_run
from traindx.model.run import Series


def series(values: object) -> Series:
    return make_run({"grad_norm": values}).series["grad_norm"]


def test_the_loss_goes_wrong_at_an_onset_or_at_the_first_nan():
    assert onset_step(series(join(decay(50), np.full(5, np.nan)))) == 50.0
    assert onset_step(series(decay(50))) is None


def test_a_spike_stands_out_from_all_before():
    norm = series(join(flat(50, 1.0), [44.0], flat(20, 9.0)))
    assert spike_near(norm, 50.0) == 50
    assert spike_near(series(flat(71, 1.0)), 50.0) is None
    before, after = levels_around(norm, 50)
    assert (before, after) == (pytest.approx(1.0, rel=0.1), pytest.approx(9.0, rel=0.1))


def test_a_clip_is_recorded_configured_or_off():
    assert clip_in_use(make_run({"clip_max": [0.5] * 3}))[0] == 0.5
    assert clip_in_use(make_run(config={"max_grad_norm": 1.0}))[0] == 1.0
    assert clip_in_use(make_run()) == (0.0, ())
    assert cite_clip_off(make_run(config={"max_grad_norm": None}))
    assert not cite_clip_off(make_run(config={"max_grad_norm": 1.0}))


def test_adaptive_optimizers_do_not_feel_the_clip():
    assert is_optimizer_adaptive(make_run(config={"optimizer": "AdamW"}))
    assert not is_optimizer_adaptive(make_run(config={"optimizer": "SGD"}))


def test_a_loss_that_falls_had_gradients():
    assert does_loss_fall(make_run({"loss/train": decay(20)}))
    assert not does_loss_fall(make_run({"loss/train": np.full(20, 2.1)}))
