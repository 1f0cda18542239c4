"""A step climbs where it descends from the negative of a loss."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.ascent import ascent
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch

opt = torch.optim.SGD(model.parameters(), lr=0.1{option})
for x, y in loader:
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    ({climbed}).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("climbed", "option", "count"),
    [("-loss", "", 1), ("-1 * loss / 4", "", 1), ("loss", "", 0), ("-(-loss)", "", 0),
     ("-loss", ", maximize=True", 0), ("gain(x) - loss", "", 0)],
)  # fmt: skip
def test_a_climb(climbed: str, option: str, count: int) -> None:
    run = script(PROGRAM, climbed=climbed, option=option)
    found = [a for story in program_of(run).stories if (a := ascent(story)) is not None]
    assert len(found) == count
    assert all(a.patch() is not None for a in found)
