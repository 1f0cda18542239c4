"""Accuracies and other scores."""

import numpy as np
import pytest

from traindx.analysis.metrics.scores import (
    are_all,
    as_shares,
    best_late_share,
    end_level,
    forgotten_task,
    has_accuracy_risen,
    held_out_accuracy,
    is_constant_score,
    is_level,
    is_lost_for_sure,
    is_model_moving,
    is_often_wrong,
    last_share,
    nothing_scored,
    stays_near_zero,
    zero_score,
)
from traindx.examples import decay, flat, logged, make_run
from traindx.model.run import Series


def series(values: object, name: str = "accuracy/val") -> Series:
    return make_run({name: values}).series[name]


def test_a_constant_score_repeats_in_several_digits():
    assert is_constant_score(series([0.41, *[0.6577] * 5]))
    assert not is_constant_score(series([0.5] * 6))
    assert not is_constant_score(series([0.6577] * 5 + [0.6644]))


def test_a_model_moves_where_its_held_out_loss_does():
    loss = series(flat(10, 2.3), "loss/train")
    assert is_model_moving(make_run({"loss/val": flat(6, 2.0)}), loss, "val")
    assert not is_model_moving(make_run({"loss/val": [2.0] * 6}), loss, "val")
    assert is_model_moving(make_run(), series(decay(10), "loss/train"), "train")


def test_a_score_of_zero_to_the_end():
    found = zero_score(make_run({"recall/val": [0.2, *[0.0] * 5]}), "val")
    assert found is not None and found.name == "recall/val"
    assert zero_score(make_run({"recall/val": [0.0] * 4 + [0.2]}), "val") is None
    assert stays_near_zero(series([0.0, 0.005] * 4))
    assert not stays_near_zero(series(np.linspace(0.0, 0.2, 8)))


def test_all_scores_of_a_kind_are_asked():
    zero, some = series([0.0] * 3), series([0.0, 0.1, 0.2])
    assert are_all([zero], lambda v: not v.any())
    assert not are_all([zero, some], lambda v: not v.any())
    assert not are_all([], lambda v: not v.any())


def test_a_score_in_percent_is_a_share():
    assert last_share(series([50.0, 98.0])) == pytest.approx(0.98)
    assert last_share(series([0.5, 0.98])) == pytest.approx(0.98)


def test_a_level_has_no_trend():
    risen = np.concatenate([np.linspace(0.1, 0.4, 40), flat(60, 0.4, noise=0.01)])
    assert is_level(series(risen)) and end_level(series(risen)) == pytest.approx(0.4, abs=0.02)
    assert not is_level(series(np.linspace(0.1, 0.5, 100)))
    assert has_accuracy_risen(make_run({"accuracy/val": [50.0, 74.0]}))
    assert not has_accuracy_risen(make_run({"accuracy/val": [0.5, 0.52]}))


def test_a_task_is_forgotten_as_another_is_learnt():
    old = series([0.1, 0.5, 0.9, 0.9, 0.6, 0.3, 0.2, 0.2], "accuracy/val/a")
    new = series([0.1, 0.1, 0.1, 0.1, 0.4, 0.7, 0.9, 0.9], "accuracy/val/b")
    found = forgotten_task([new, old])
    assert found is not None and (found[0], found[2]) == (old, new)
    assert forgotten_task([old]) is None


def test_the_accuracy_of_held_out_data_comes_first():
    told = {"accuracy/train": [0.9] * 3, "accuracy/test": [0.5] * 3}
    found = held_out_accuracy(make_run(told))
    assert found is not None and found.name == "accuracy/test"
    assert best_late_share(series([10.0, 80.0, 70.0])) == pytest.approx(0.8)
    assert is_often_wrong(make_run({"accuracy/val": [0.5] * 5}))
    assert not is_often_wrong(make_run({"accuracy/val": [0.99] * 5}))


def test_percent_are_shares():
    assert as_shares(series([50.0, 98.0])).tolist() == [0.5, 0.98]


def test_a_score_that_is_nothing_in_all_parts():
    def nothing(**series: list[float]) -> str:
        run = logged(**series)
        found = nothing_scored(run, ("em", "f1"), ("val*", "test*"), lambda v: not v.any())
        return "" if found is None else found.name

    assert nothing(f1_val=[0.0] * 4) == "f1/val"
    assert nothing(f1_val=[0.0] * 4, f1_test=[0.0, 0.1, 0.0, 0.0]) == ""
    assert nothing(f1_train=[0.0] * 4) == ""


def test_a_task_is_lost_for_sure_where_it_falls_far_and_not_alone_among_many() -> None:
    falls = np.concatenate([np.linspace(0.1, 0.9, 10), np.linspace(0.85, 0.2, 10)])
    run = make_run({f"accuracy/val/t{i}": falls for i in range(2)})
    tasks = list(run.series.values())
    assert is_lost_for_sure(falls, tasks, 8)
    counted = np.array([0.0, 0.5, 1.0, 1.0, 0.5, 0.0, 0.0, 0.5])
    assert not is_lost_for_sure(counted, tasks, 8)
    kept = make_run({f"accuracy/val/t{i}": np.linspace(0.1, 0.9, 20) for i in range(11)})
    assert not is_lost_for_sure(falls, [tasks[0], *kept.series.values()], 8)
