"""When a validation loss that rises is a remark, and when it is the cause."""

from __future__ import annotations

import numpy as np

from traindx.detectors.generalisation.rising_validation_loss import check
from traindx.examples import decay, join, make_run
from traindx.model.run import Floats

_TURNING = join(decay(8, 1.1, 0.7, noise=0.002), np.linspace(0.72, 1.6, 22))


def _shown(train: Floats, val: Floats) -> list[str | None]:
    losses = {"loss/train": decay(30, 3.0, 0.3, noise=0.01), "loss/val": _TURNING}
    scores = {"accuracy/train": train, "accuracy/val": val}
    return [f.shows for f in check(make_run({**losses, **scores}, axis="epoch"))]


def test_an_accuracy_that_holds_far_below_that_of_training_excuses_nothing() -> None:
    assert _shown(np.linspace(0.5, 0.98, 30), np.full(30, 0.61)) == ["overfitting"]


def test_an_accuracy_that_holds_near_that_of_training_does() -> None:
    assert _shown(np.linspace(0.5, 0.98, 30), np.full(30, 0.9)) == [None]


def test_an_accuracy_that_still_rises_does() -> None:
    assert _shown(np.linspace(0.5, 0.98, 30), np.linspace(0.5, 0.66, 30)) == [None]
