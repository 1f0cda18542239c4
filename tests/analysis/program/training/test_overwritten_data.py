"""Data whose name a batch takes."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.overwritten_data import overwritten_data
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import torch
from torch import nn
net, layers = nn.Linear(4, 2), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
rows = torch.randn(90, 4)
for epoch in range(5):
    {line}
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("for rows in rows.split(30):\n        net(rows)", {"rows"}),
        ("for i in range(0, 90, 30):\n        rows = rows[i:i + 30]\n        net(rows)", {"rows"}),
        ("for part in rows.split(30):\n        net(part)", set()),
        ("for layer in layers:\n        rows = layer(rows)", set()),
        ("rows = rows[torch.randperm(90)]\n    net(rows)", set()),
        ("for rows in rows.split(30):\n        print(rows)", set()),
    ],
)
def test_what_is_overwritten(line: str, names: set[str]) -> None:
    (story,) = program_of(script(TEXT, line=line)).stories
    assert {found.assignment.name for found in overwritten_data(story)} == names
