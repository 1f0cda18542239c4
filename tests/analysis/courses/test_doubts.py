"""What speaks against a clean bill has no unit, and is little where all is well."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.doubts import LIKELY, TOLD, doubts, gravest, probability_of_trouble
from traindx.analysis.courses.fitted_weights import TROUBLE
from traindx.examples import decay, flat, logged, make_run
from traindx.model.run import Run

HEALTHY = logged(
    loss_train=decay(60, 2.3, 0.3, noise=0.02),
    loss_val=decay(60, 2.3, 0.35, noise=0.01),
    accuracy_val=np.linspace(0.3, 0.93, 60),
)


def test_every_figure_has_a_weight_and_a_sentence() -> None:
    assert set(doubts(HEALTHY)) == set(TOLD) == set(TROUBLE) - {"constant"}
    assert all(weight >= 0 for name, weight in TROUBLE.items() if name != "constant")


def test_a_healthy_run_leaves_little_doubt() -> None:
    assert probability_of_trouble(doubts(HEALTHY)) < LIKELY


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (logged(loss_train=flat(60, 2.3, noise=0.01)), TOLD["small_gain"]),
        (
            logged(loss_train=decay(60, 2.3, 0.01), loss_val=np.linspace(1.0, 4.0, 60)),
            TOLD["rise"],
        ),
        (logged(loss_train=decay(60, 3e9, 2e8)), TOLD["huge"]),
        (
            logged(loss_train=decay(60, 4.0, 3.0), accuracy_val=np.linspace(0.01, 0.08, 60)),
            TOLD["few_right"],
        ),
    ],
)
def test_the_gravest_doubt_is_told(run: Run, sentence: str) -> None:
    figures = doubts(run)
    assert probability_of_trouble(figures) > LIKELY
    assert gravest(figures) == sentence


@pytest.mark.parametrize("factor", [1e-3, 30.0])
def test_scale_does_not_matter_below_raw_units(factor: float) -> None:
    run = logged(loss_train=factor * decay(60), loss_val=factor * decay(60, 2.3, 0.9))
    own = logged(loss_train=decay(60), loss_val=decay(60, 2.3, 0.9))
    assert doubts(run) == pytest.approx(doubts(own))


def test_a_run_without_metrics_is_bounded() -> None:
    assert all(0.0 <= value <= 1.0 for value in doubts(make_run()).values())
