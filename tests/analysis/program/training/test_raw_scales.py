"""Inputs and targets in raw units."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.raw_scales import raw_inputs, raw_targets
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
x = {x}
y = {y}
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(99):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("x", "y", "found"),
    [
        ("torch.randn(9, 3)", "torch.randn(9)", (0, 0)),
        ("torch.randn(9, 3) * 400", "torch.randn(9)", (1, 0)),
        ("torch.randn(9, 3)", "torch.randn(9) * 30 + 5000", (0, 1)),
        ("torch.load('x.pt')", "torch.load('y.pt')", (0, 0)),
    ],
)
def test_raw_scales(x: str, y: str, found: tuple[int, int]) -> None:
    (story,) = program_of(script(PROGRAM, x=x, y=y)).stories
    assert (len([*raw_inputs(story)]), len([*raw_targets(story)])) == found
