"""Inputs and targets that are one slice."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.twin_slices import twin_slices
from traindx.examples import script

TEXT = """
import torch
model = torch.nn.Linear(8, 3)
for i in range(0, 1000, 24):
    x = data[:, i : i + 24]
    y = {target}
    torch.nn.functional.cross_entropy(model(x), y).backward()
"""


@pytest.mark.parametrize(
    ("target", "count"),
    [("data[:, i : i + 24]", 1), ("data[:, i + 1 : i + 25]", 0), ("other[:, i : i + 24]", 0)],
)
def test_twin_slices(target: str, count: int) -> None:
    found = list(twin_slices(program_of(script(TEXT, target=target))))
    assert [("x" in given.names, "y" in wanted.names) for given, wanted in found] == (
        [(True, True)] * count
    )
