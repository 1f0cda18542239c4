"""Gradients whose elements are all of one size."""

from __future__ import annotations

from math import isclose, sqrt

from traindx.analysis.recordings.clamped_gradients import clamped_gradients
from traindx.model.recording import Model, Parameter, Process, Sample

SIZES = (4, 9, 100)


def process(*elements: float, growth: float = 0.0) -> Process:
    parameters = tuple(Parameter(f"p{n}", (n,), "float32", True, 0) for n in SIZES)
    samples = tuple(
        Sample(
            i, i, 0, 1.0, tuple(p.name for p in parameters),
            tuple(c * sqrt(n) * (1 + growth * i) for c, n in zip(elements, SIZES, strict=True)),
            (1.0,) * 3, (1e-5,) * 3,
        )
        for i in range(6)
    )  # fmt: skip
    return Process(models=(Model(1, 0, "Net", 0, parameters),), samples=samples)


def test_elements_of_one_size() -> None:
    found = clamped_gradients(process(1e-4, 3e-3, 1e-4))
    assert found is not None and isclose(found.limit, 1e-4)
    assert [t.name for t in found.traces] == ["p4", "p100"]
    assert isclose(found.ratio, 1e-5)


def test_sizes_that_differ_or_change() -> None:
    assert clamped_gradients(process(1e-4, 2e-4, 3e-4)) is None
    assert clamped_gradients(process(1e-4, 1e-4, 1e-4, growth=0.1)) is None
