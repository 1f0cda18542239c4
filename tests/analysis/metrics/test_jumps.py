"""Jumps of a loss."""

import numpy as np
import pytest

from traindx.analysis.curves import divergence
from traindx.analysis.metrics.jumps import (
    boundaries,
    climbs_on,
    drop_after,
    goes_on,
    jump_above_start,
    jump_at_resume,
    jump_between,
    resumes,
    step_up,
    swap_after,
)
from traindx.examples import decay, flat, join, make_run
from traindx.model.run import Event, Series

AGAIN = join(decay(10, 0.42, 0.0004, noise=0.0), [3.1], decay(9, 0.25, 0.05, noise=0.0))
STEP = join(decay(300, 6.0, 4.0, noise=0.01), decay(200, 5.2, 4.4, noise=0.01))


def series(values: object, name: str = "loss/train", **fields: object) -> Series:
    return make_run({name: values}, **fields).series[name]


def test_a_loss_that_was_learnt_jumps_above_its_start():
    assert jump_above_start(AGAIN) == 10
    assert jump_above_start(np.minimum(AGAIN, 0.4)) is None


def test_what_the_metric_does_at_the_jump():
    loss = series(AGAIN, axis="epoch")
    lost = series(join(np.full(10, 0.9), [0.4], np.full(9, 0.5)), "accuracy/val", axis="epoch")
    assert drop_after(lost, loss, 10) == 10
    kept = series(np.full(20, 0.9), "accuracy/val", axis="epoch")
    assert drop_after(kept, loss, 10) is None
    swapped = series(join(np.linspace(2, 5, 10), [1.6], np.linspace(2.4, 4.5, 9)), axis="epoch")
    assert swap_after(swapped, loss, 10) == 10
    assert swap_after(series(flat(20, 2.0), axis="epoch"), loss, 10) is None


def test_a_resume_is_a_step_back_or_an_event():
    steps = join(np.arange(300.0), np.arange(290.0, 490.0))
    loss = series(STEP, steps=steps)
    assert [at for at, _ in resumes(make_run(), loss)] == [300]
    event = Event("resume", "resumed", "train.log", "line 9", step=200)
    assert [at for at, _ in resumes(make_run(events=[event]), series(STEP))] == [200]
    low, high = jump_at_resume(series(STEP), 300) or (0.0, 0.0)
    assert (low, high) == (pytest.approx(4.0, rel=0.02), pytest.approx(5.1, rel=0.05))
    assert jump_at_resume(series(STEP), 200) is None


def test_a_boundary_explains_a_step_up():
    event = Event("boundary", "stage 2", "train.log", "line 9", step=300)
    loss = series(STEP)
    assert [at for at, _ in boundaries(make_run(events=[event]), loss)] == [300]
    config = {"curriculum_step": 120}
    assert [at for at, _ in boundaries(make_run(config=config), loss)] == [120]
    assert step_up(loss, 300) is not None
    assert step_up(loss, 150) is None
    assert goes_on(series(decay(100)))
    assert not goes_on(series(join(decay(50), [np.nan])))


def test_a_jump_between_two_steps():
    loss = series(join(decay(120, 2.0, 0.1, noise=0.0), 6.0 * decay(80, 1.0, 0.2, noise=0.0)))
    assert jump_between(loss, 100, 140) == 120
    assert jump_between(loss, 20, 80) is None


def test_a_climb_goes_on_where_a_step_does_not():
    climb = series(join(decay(200), 0.4 * np.exp(np.arange(60) / 12.0)))
    found = divergence(climb.values)
    assert found is not None and climbs_on(climb, found)
    step = series(join(decay(200, 6.0, 4.0, noise=0.01), flat(80, 5.0, noise=0.01)))
    found = divergence(step.values)
    assert found is not None and not climbs_on(step, found)
