"""What of a run is said to be in order: only what was seen to be."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.diagnosis.engine import diagnose
from traindx.diagnosis.shown_in_order import CHECKS, shown_in_order
from traindx.examples import make_run, recorded, sampled
from traindx.model.findings import Diagnosis
from traindx.model.run import Run

FALLS = np.linspace(2.3, 0.2, 60)


def config(**settings: object) -> dict[str, object]:
    return dict(settings)


@pytest.mark.parametrize(
    ("check", "shown", "open_"),
    [
        ("metric-improves", make_run({"loss/train": FALLS}), make_run({"loss/train": [2.3] * 60})),
        (
            "loss-finite",
            make_run({"loss/train": FALLS}),
            make_run({"loss/train": [2.3, 1.0, np.nan]}),
        ),
        (
            "loss-below-constant",
            make_run({"loss/train": FALLS}, config=config(num_classes=10)),
            make_run({"loss/train": FALLS}),  # of how many classes?
        ),
        (
            "metric-above-chance",
            make_run({"accuracy/val": [0.1, 0.6, 0.8]}, config=config(num_classes=10)),
            make_run({"accuracy/val": [0.1, 0.11, 0.1]}, config=config(num_classes=10)),
        ),
        ("held-out-evaluated", make_run({"loss/val": FALLS}), make_run({"loss/train": FALLS})),
        (
            "parameters-moved",
            recorded(sampled(3, names=("w", "b"), has_moved=(True, True))),
            recorded(sampled(3, names=("w", "b"), has_moved=(True, False))),
        ),
    ],
)
def test_what_is_shown_and_what_is_not(check: str, shown: Run, open_: Run) -> None:
    assert check in shown_in_order(shown)
    assert check not in shown_in_order(open_)


def test_an_empty_run_shows_nothing() -> None:
    nothing = make_run({"accuracy/val": [np.nan] * 5, "r2/val": [np.nan] * 5})
    assert shown_in_order(nothing) == ("held-out-evaluated",)  # looked at, with no number
    assert shown_in_order(Run()) == ()


def test_every_diagnosis_carries_it() -> None:
    found = diagnose(make_run({"loss/train": FALLS, "loss/val": FALLS}))
    assert {"metric-improves", "held-out-evaluated"} <= {*found.judged} <= {*CHECKS}
    assert found.to_dict()["judged"] == list(found.judged)
    assert Diagnosis.from_dict(found.to_dict()).judged == found.judged
