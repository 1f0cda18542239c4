"""Batch norm sees more than one example."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.single_examples import norms_of_single_examples
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.{norm}(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size={size}):
    optimizer.zero_grad()
    for a in {parts}:
        model(a).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("norm", "size", "parts", "cut"),
    [
        ("BatchNorm2d", 1, "[x]", {False}),
        ("BatchNorm2d", 16, "x.split(1)", {True}),
        ("BatchNorm2d", 16, "x.split(8)", set()),
        ("BatchNorm2d", 16, "[x]", set()),
        ("GroupNorm", 1, "[x]", set()),
    ],
)
def test_passes_of_one_example(norm: str, size: int, parts: str, cut: set[bool]) -> None:
    (story,) = program_of(script(PROGRAM, norm=norm, size=size, parts=parts)).stories
    assert {found.is_cut for found in norms_of_single_examples(story)} == cut
