"""Losses that become NaN or infinite."""

import numpy as np

from traindx.analysis.metrics.broken_losses import (
    cite_announced_half,
    cite_half_precision,
    cite_last_finite,
    course_before,
    gave_up,
    has_burst,
    has_climbed,
    has_scored,
    is_written_as_zero,
    last_word,
    lost_loss,
    lost_since,
    value_word,
)
from traindx.examples import decay, failed, join, make_run
from traindx.model.run import Event, Origin, Run, Series

LOG = Origin("train.log", "loss")


def series(values: object) -> Series:
    return make_run({"loss/train": values}).series["loss/train"]


def test_a_loss_is_lost_since_the_first_nan_that_lasts():
    assert lost_since(series([1.0, np.nan, 0.9, np.nan, np.inf])) == 3
    assert lost_since(series([1.0, -3.2e34])) == 1
    assert lost_since(series([1.0, np.nan, 0.9])) is None


def test_another_line_may_have_the_last_word():
    places = np.arange(9)
    loss = Series("loss/train", decay(9), np.arange(9.0), LOG, places=places)
    ends = Series("loss/train@2", np.array([np.nan]), np.ones(1), LOG, places=np.array([12]))
    run = Run(series={"loss/train": loss, "loss/train@2": ends})
    assert last_word(run, loss, "train") is not None
    early = Series("loss/train@2", np.array([np.nan]), np.ones(1), LOG, places=np.array([2]))
    assert last_word(Run(series={"loss/train@2": early}), loss, "train") is None


def test_how_a_loss_came_to_break():
    assert has_climbed(series(join(decay(50), 0.5 * np.exp(np.arange(12.0)))))
    assert not has_climbed(series(decay(50)))
    assert has_burst(make_run({"loss/train/mask": [0.6, 1.2e6]}), 1.7)
    assert not has_burst(make_run({"loss/train/mask": [0.6, 0.7]}), 1.7)


def test_what_else_a_log_says_of_a_broken_loss():
    assert is_written_as_zero(make_run({"loss/train": [1.0, 0.0, 0.0]}))
    assert not is_written_as_zero(make_run({"loss/train": [1.0, 0.5]}))
    assert has_scored(make_run({"accuracy/val": [0.0, 0.1]}))
    assert not has_scored(make_run({"accuracy/train": [0.5], "accuracy/val": [0.0]}))


def test_half_precision_is_a_setting_or_a_line():
    assert cite_half_precision(make_run(config={"trainer.precision": "16-mixed"}))
    assert not cite_half_precision(make_run(config={"precision": "bf16"}))
    event = Event("half-precision", "using fp16", "train.log", "line 1")
    assert cite_announced_half(make_run(events=[event]))[0].says == "using fp16"


def test_the_course_before_says_what_may_be_behind():
    run = make_run()
    assert course_before(run, series([]))[0] == "from the first point on"
    assert course_before(run, series(decay(50)))[0] == "suddenly, without a rise"
    climb = series(join(decay(50), 0.5 * np.exp(np.arange(12.0))))
    assert course_before(run, climb)[0] == "after a rise"
    assert [value_word(v) for v in (np.nan, np.inf, 3e34)] == ["NaN", "infinite", "3e+34"]


def test_the_lost_loss_is_told_with_what_it_was_before():
    found = lost_loss(make_run({"loss/train": join(decay(9), [np.nan] * 3)}))
    assert found is not None
    assert (found[1], len(found[2]), found[3]) == (9, 9, "train")
    assert lost_loss(make_run({"loss/train": decay(9)})) is None


def test_a_loop_gives_up_on_its_loss():
    def ended(message: str) -> Run:
        return failed(f"ValueError: {message}")

    assert gave_up(ended("Loss is nan, stopping training")) is not None
    assert gave_up(ended("the info of the loss is missing")) is None
    assert gave_up(make_run()) is None


def test_the_last_finite_value_is_cited():
    assert cite_last_finite(series([3.0, 2.5]))[0].says == "its last finite value is 2.5"
    assert cite_last_finite(None) == ()
