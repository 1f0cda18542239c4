"""Layers that are random in evaluation as in training."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.random_layers import random_layers
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        {body}
model = Net()
model.eval()
with torch.no_grad():
    for x, y in val_loader:
        print(nn.functional.mse_loss(model(x), {wanted}))
"""


@pytest.mark.parametrize(
    ("body", "wanted", "count"),
    [
        ("return self.fc(x + torch.randn_like(x))", "y", 1),
        ("return self.fc(x * (torch.rand(4) > 0.1))", "y", 1),
        ("return self.fc(x + torch.randn_like(x))", "x", 0),
        ("return self.fc(x) + torch.randn(4)", "y", 0),
        ("return self.fc(x + torch.randn_like(x) if self.training else x)", "y", 0),
        ("noise = torch.randn(len(x), 4); return self.fc(noise)", "y", 0),
    ],
)
def test_random_layers(body: str, wanted: str, count: int) -> None:
    (story,) = program_of(script(PROGRAM, body=body, wanted=wanted)).stories
    assert len([*random_layers(story)]) == count
