"""The input of a model is made in validation as in training."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.held_out_inputs import input_differences
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch

model = torch.nn.Linear(8, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    opt.zero_grad()
    torch.nn.functional.cross_entropy(model(x / 255), y).backward()
    opt.step()
with torch.no_grad():
    for x, y in val_loader:
        hits = model({given}).argmax(1) == y
"""


@pytest.mark.parametrize(
    ("given", "noise"),
    [("x", [False]), ("x / 255 + torch.randn_like(x)", [True]), ("x.div(255)", [])],
)
def test_an_input_that_training_does_not_make_so(given: str, noise: list[bool]) -> None:
    run = script(PROGRAM, given=given)
    found = each_place(run, input_differences, lambda difference: difference.held.event.node)
    assert [difference.is_noise for difference in found] == noise
