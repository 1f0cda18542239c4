"""The largest score is picked along the classes."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.picks import wrong_picks
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch

model = torch.nn.Linear(8, {units})
for x, y in val_loader:
    scores = model(x)
    hits = (scores.softmax(1).argmax({dim}) == y).sum()
"""


@pytest.mark.parametrize(
    ("units", "dim", "said"), [(3, 0, ["batch"]), (1, -1, ["single output"]), (3, 1, [])]
)
def test_a_pick_along_a_wrong_dimension(units: int, dim: int, said: list[str]) -> None:
    run = script(PROGRAM, units=units, dim=dim)
    claims = [claim for _, claim in each_place(run, wrong_picks, lambda pick: pick[0].node)]
    assert len(claims) == len(said)
    assert all(word in claim for word, claim in zip(said, claims, strict=True))
