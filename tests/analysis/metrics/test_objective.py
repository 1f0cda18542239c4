"""The loss that a run minimises."""

import numpy as np
import pytest

from traindx.analysis.metrics.objective import (
    does_not_fall,
    finite_metric,
    finite_objective,
    share_gained,
    stands_still,
    stays_above,
)
from traindx.examples import decay, flat, make_run


def test_a_loss_needs_enough_finite_points():
    run = make_run({"loss/train": [1.0, np.nan, 0.5]})
    found = finite_objective(run, 2)
    assert found is not None and found.values.tolist() == [1.0, 0.5]
    assert finite_objective(run, 3) is None
    assert finite_metric(run, "lr") is None


def test_an_adversarial_loss_is_no_objective():
    assert finite_objective(make_run({"loss/train/generator": decay(20)})) is None


def test_what_was_gained_is_a_share_of_the_start():
    run = make_run({"loss/train": decay(100, 4.0, 1.0, noise=0.0)})
    assert share_gained(run, 10, from_first=True) == pytest.approx(0.75, abs=0.02)
    assert share_gained(run, 200) is None
    assert not stands_still(run, 10, 0.05)
    assert stands_still(make_run({"loss/train": flat(60, 2.3, noise=0.005)}), 10, 0.05)


def test_a_loss_that_stays_above_a_level_or_does_not_fall():
    assert stays_above(make_run({"loss/train": [60.0, 50.0, 40.0]}), 2.3)
    assert not stays_above(make_run({"loss/train": [60.0, 5.0, 0.4]}), 2.3)
    assert does_not_fall(make_run({"loss/train": flat(60, 2.3, noise=0.01)}))
    assert not does_not_fall(make_run({"loss/train": decay(60)}))
