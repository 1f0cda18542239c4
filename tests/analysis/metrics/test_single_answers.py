"""Runs in which one class is the answer to every input."""

from dataclasses import replace

import pytest

from traindx.analysis.metrics.single_answers import never_found, single_answer
from traindx.examples import Confusion, logged, make_run
from traindx.model.run import Run

COUNTS = {"val.class_counts": {"0": 700, "1": 300}}


def matrix(*rows: tuple[float, ...]) -> Run:
    return replace(make_run(), confusions=(Confusion(rows, ("0", "1"), "eval.log", "line 9"),))


def test_a_matrix_shows_the_only_answer():
    found = single_answer(matrix((70.0, 0.0), (30.0, 0.0)))
    assert found is not None and found.is_seen
    assert (found.says, found.share) == ("Every input is classified as 0", 0.7)
    assert single_answer(matrix((69.0, 1.0), (30.0, 0.0))) is None


def test_recalls_show_it_as_well():
    def recalls(first: float, second: float) -> Run:
        return make_run({"recall/val/class_0": [first], "recall/val/class_1": [second]})

    found = single_answer(recalls(1.0, 0.0))
    assert found is not None and found.says.endswith("class_0")
    assert single_answer(recalls(1.0, 0.1)) is None


@pytest.mark.parametrize(("end", "stays"), [(0.7, True), (0.72, False)])
def test_an_accuracy_that_stays_at_the_largest_class(end: float, stays: bool):
    found = single_answer(logged(accuracy_val=[0.5, *[end] * 5], config=COUNTS))
    assert (found is not None and not found.is_seen) is stays


def test_a_metric_that_finds_nothing_while_the_loss_falls():
    found = never_found(logged(f1_val=[0.0] * 4, loss_train=[1.0, 0.5, 0.2, 0.1]))
    assert found is not None and found[0] == "f1/val"
    assert never_found(logged(f1_val=[0.0, 0.0, 0.1], loss_train=[1.0, 0.5, 0.1])) is None
    assert never_found(logged(f1_val=[0.0] * 4, loss_train=[1.0, 0.9, 0.8, 0.7])) is None
