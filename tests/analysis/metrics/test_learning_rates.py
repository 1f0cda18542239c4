"""The learning rate that a run logged or was configured with."""

import numpy as np

from traindx.analysis.metrics.learning_rates import (
    cite_rate_in_use,
    cite_tiny_rate,
    do_evaluations_differ,
    highest_rate,
    is_rate_constant,
    is_rate_scaled,
    rate_rises,
    refuted_by_rate,
    unapplied_rate,
    vanished_since,
    zero_settings,
)
from traindx.examples import make_run


def test_a_logged_rate_counts_before_a_configured_one():
    found = highest_rate(make_run({"lr": [0.1, 0.3]}, config={"lr": 0.5}))
    assert found is not None and found[0] == 0.3
    found = highest_rate(make_run(config={"lr": 0.5}))
    assert found is not None and found[0] == 0.5
    assert highest_rate(make_run()) is None


def test_the_rate_in_use_is_cited_where_it_is_known():
    assert cite_rate_in_use(make_run(config={"lr": 0.5}))[0].says == "lr is 0.5"
    assert cite_rate_in_use(make_run({"lr": [0.1]}))[0].says == "the learning rate was 0.1"
    assert cite_rate_in_use(make_run()) == ()


def test_settings_that_scale_the_rate():
    assert is_rate_scaled(make_run(config={"scale_lr": True}))
    assert not is_rate_scaled(make_run(config={"lr": 0.1}))


def test_a_rate_that_rises_at_a_point_of_the_loss():
    run = make_run({"loss/train": np.ones(4), "lr": [0.1, 0.1, 0.5, 0.5]})
    assert rate_rises(run, run.series["loss/train"], 2)
    assert not rate_rises(run, run.series["loss/train"], 3)


def test_evaluations_differ_where_weights_move():
    assert do_evaluations_differ(make_run({"loss/val": [1.0, 0.9, 0.8]}))
    assert not do_evaluations_differ(make_run({"loss/val": [1.0, 0.9, 0.9]}))


def test_a_tiny_rate_is_cited():
    assert cite_tiny_rate(make_run({"lr": [1e-8] * 3}))
    assert cite_tiny_rate(make_run(config={"lr": 1e-8}))
    assert cite_tiny_rate(make_run({"lr": [1e-3] * 3}, config={"lr": 1e-8})) == ()


def test_a_logged_rate_is_constant_and_not_zero():
    assert is_rate_constant(make_run({"lr": [0.1] * 3}))
    assert not is_rate_constant(make_run({"lr": [0.1, 0.2]}))
    assert list(refuted_by_rate(make_run({"lr": [0.1]}))) == ["lr-zero"]
    assert refuted_by_rate(make_run({"lr": [0.0]})) == {}


def test_a_rate_that_falls_to_nothing_for_good():
    def since(*values: float) -> tuple[int, float, bool] | None:
        return vanished_since(make_run({"lr": values}).series["lr"])

    assert since(0.1, 0.1, 0.1, 0.0, 0.0) == (3, 0.4, True)
    assert since(0.1, 0.1, 0.1, 1e-12, 1e-12) == (3, 0.4, False)
    assert since(0.0, 0.0, 0.1, 0.1, 0.1) is None


def test_configured_rates_that_are_all_zero():
    assert [s.key for s in zero_settings(make_run(config={"lr": 0.0}))] == ["lr"]
    assert zero_settings(make_run(config={"lr": 0.1})) == []


def test_a_configured_rate_that_is_never_used():
    found = unapplied_rate(make_run({"lr": np.full(50, 1e-3)}, config={"optimizer.lr": 0.1}))
    assert found is not None and found[2].key == "optimizer.lr"
    assert unapplied_rate(make_run({"lr": np.full(50, 0.1)}, config={"lr": 0.1})) is None
    rising = make_run({"lr": np.linspace(0.0, 0.02, 50)}, config={"lr": 0.1})
    assert unapplied_rate(rising) is None
