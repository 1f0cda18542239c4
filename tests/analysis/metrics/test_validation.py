"""The validation loss beside the training loss."""

import numpy as np

from traindx.analysis.metrics.validation import (
    begins_anew,
    cite_accuracies_apart,
    cite_train_gain,
    metric_says,
    turn_of,
    turned_loss,
    validation_losses,
)
from traindx.examples import decay, flat, join, logged, make_run
from traindx.model.run import Series

TURNING = join(decay(8, 4.0, 3.5, noise=0.002), np.linspace(3.52, 4.3, 22))


def series(values: object, name: str) -> Series:
    return make_run({name: values}, axis="epoch").series[name]


def test_the_whole_validation_loss_counts_before_its_parts():
    run = make_run({"loss/val": [1.0], "loss/val/box": [0.5]})
    assert [s.name for s in validation_losses(run)] == ["loss/val"]
    run = make_run({"loss/val/cls": [1.0], "loss/val/box": [0.5]})
    assert [s.name for s in validation_losses(run)] == ["loss/val/cls", "loss/val/box"]


def test_a_loss_turns_where_it_leaves_its_minimum():
    turn = turn_of(series(TURNING, "loss/val"))
    assert turn is not None and turn <= 9
    assert turn_of(series([0.9, 0.7, 0.8, 0.95, 1.2], "loss/val")) == 1
    assert turn_of(series(decay(30), "loss/val")) is None


def test_training_goes_on_falling_after_the_turn():
    val, train = series(TURNING, "loss/val"), series(decay(30, 3.0, 0.3), "loss/train")
    assert cite_train_gain(train, val, 8) is not None
    assert cite_train_gain(series(flat(30, 1.0), "loss/train"), val, 8) is None
    anew = series(join(decay(8, 1.0, 0.1), [3.0], decay(21, 3.0, 0.1)), "loss/train")
    assert begins_anew(anew, val, 8) and not begins_anew(train, val, 8)


def test_a_metric_holds_or_falls_off_too():
    val = series(TURNING, "loss/val")
    assert metric_says(make_run({"accuracy/val": np.linspace(0.5, 0.8, 30)}), val)[0] == "better"
    fallen = join(np.linspace(0.5, 0.8, 10), np.linspace(0.8, 0.6, 20))
    assert metric_says(make_run({"accuracy/val": fallen}), val)[0] == "worse"
    assert metric_says(make_run(), val) == ("unknown", ())


def test_accuracies_may_end_far_apart():
    told = {"accuracy/train": np.linspace(0.5, 0.98, 30), "accuracy/val": np.full(30, 0.61)}
    assert cite_accuracies_apart(make_run(told), 0.3)
    told["accuracy/val"] = np.linspace(0.5, 0.9, 30)
    assert cite_accuracies_apart(make_run(told), 0.3) == ()


def test_a_validation_loss_that_turned_while_training_fell():
    turning = np.concatenate([decay(8, 4.0, 3.5, noise=0.0), np.linspace(3.6, 5.3, 22)])
    run = logged(loss_train=decay(30, 3.0, 0.3, noise=0.01), loss_val=turning)
    found = turned_loss(run, run.series["loss/val"])
    assert found is not None and found.is_clear
    assert (found.at, found.verdict, len(found.evidence)) == (7, "unknown", 2)
    flat_run = logged(loss_train=np.full(30, 3.0), loss_val=turning)
    assert turned_loss(flat_run, flat_run.series["loss/val"]) is None
