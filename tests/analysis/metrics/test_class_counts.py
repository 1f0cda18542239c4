"""How many examples each class has."""

from dataclasses import replace

import pytest

from traindx.analysis.metrics.class_counts import (
    held_out_counts,
    largest_class_share,
    last_recall,
    only_predicted_class,
    training_counts,
)
from traindx.examples import make_run
from traindx.model.run import Confusion

MATRIX = Confusion(((90.0, 0.0), (10.0, 0.0)), ("0", "1"), "eval.log")


def test_held_out_counts_come_first():
    config = {"class_counts": {"0": 1}, "val.class_counts": {"0": 70, "1": 30}}
    found = held_out_counts(make_run(config=config))
    assert found is not None and largest_class_share(found) == pytest.approx(0.7)
    assert held_out_counts(make_run()) is None


def test_counts_of_training_may_be_those_of_a_matrix():
    found = training_counts(make_run(config={"class_counts": {"0": 9, "1": 1}}))
    assert found is not None and found[0] == {"0": 9, "1": 1}
    found = training_counts(replace(make_run(), confusions=(MATRIX,)))
    assert found is not None and found[0] == {"0": 90.0, "1": 10.0}
    assert training_counts(make_run(config={"val.class_counts": {"0": 9}})) is None


def test_the_recall_of_a_class_by_matrix_or_by_report():
    found = last_recall(replace(make_run(), confusions=(MATRIX,)), "1")
    assert found is not None and found[0] == 0.0
    found = last_recall(make_run({"recall/val/class 1": [0.1, 0.4]}), "1")
    assert found is not None and found[0] == 0.4
    assert last_recall(make_run(), "1") is None


def test_one_column_of_a_matrix_is_one_class():
    assert only_predicted_class(MATRIX) == ("0", 0.9, "100 examples of 2 classes")
    assert only_predicted_class(replace(MATRIX, matrix=((3.0, 0.0), (2.0, 0.0)))) is None
    assert only_predicted_class(replace(MATRIX, matrix=((50.0, 0.0), (49.0, 1.0)))) is None
