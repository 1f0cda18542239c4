"""When steps that change next to nothing show the rate to be too low, and when they only hint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traindx.detectors.optimisation.tiny_weight_updates import check
from traindx.examples import flat, recorded, watched, weights
from traindx.model.recording import Optimizer
from traindx.model.run import Floats

CONSTANT = np.full(60, 1e-7)


@pytest.mark.parametrize(
    ("optimizer", "rates", "shows"),
    [
        ("AdamW", CONSTANT, "lr-too-low"),
        ("SGD", CONSTANT, None),
        ("AdamW", np.linspace(1e-9, 1e-7, 60), None),
        ("AdamW", np.linspace(1e-7, 1e-9, 60), None),
    ],
    ids=["adaptive", "plain", "warming up", "at the end of a decay"],
)
def test_only_a_constant_rate_of_an_adaptive_optimizer_is_shown(
    optimizer: str, rates: Floats, shows: str | None
) -> None:
    process = watched(*weights("0.weight", "2.weight"), count=6)
    tiny = tuple(replace(s, update_ratios=(1e-7, 5e-8)) for s in process.samples)
    told = replace(process, samples=tiny, optimizers=(Optimizer(1, type=optimizer),))
    run = recorded(told, loss_train=flat(60, 2.3, noise=0.005), lr=rates)
    (finding,) = check(run)
    assert (finding.shows, finding.is_symptom) == (shows, shows is not None)
    assert "lr-too-low" in finding.suggests
