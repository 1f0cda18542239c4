"""Models that every turn of a loop compiles anew."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.compilation import compiled_again
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

TEXT = """
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    {inside}
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("inside", "count"),
    [
        ("model = torch.compile(model)", 1),
        ("model = torch.compile(Net())", 0),
        ("if epoch == 0: model = torch.compile(model)", 0),
    ],
)
def test_compiled_again(inside: str, count: int) -> None:
    found = each_place(script(TEXT, inside=inside), compiled_again, lambda pair: pair[0].node)
    assert len(list(found)) == count
