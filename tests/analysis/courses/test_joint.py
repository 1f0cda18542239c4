"""Two metrics are compared at the same time, whatever each was logged by."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.analysis.courses.joint import likeness, together
from traindx.examples import make_run


def test_series_of_other_spacing_are_aligned() -> None:
    run = make_run({"lr": np.linspace(0, 1, 200)}, steps=np.arange(200.0))
    other = make_run({"loss/train": np.linspace(5, 4, 20)}, steps=np.arange(20) * 10.0)
    pair = together(run.series["lr"], other.series["loss/train"])
    assert pair is not None
    assert likeness(*pair) == pytest.approx(-1.0)


def test_what_does_not_overlap_is_not_compared() -> None:
    early = make_run({"lr": np.ones(9)}, steps=np.arange(9.0)).series["lr"]
    late = make_run({"lr": np.ones(9)}, steps=100.0 + np.arange(9.0)).series["lr"]
    assert together(early, late) is None


def test_likeness_sees_order_and_not_scale() -> None:
    rising = np.arange(30.0)
    assert likeness(rising, np.exp(rising)) == pytest.approx(1.0)
    assert likeness(rising, -(rising**3)) == pytest.approx(-1.0)
    assert likeness(rising, np.full(30, 2.0)) == 0.0
