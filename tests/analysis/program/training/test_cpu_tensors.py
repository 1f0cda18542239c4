"""A tensor of a forward pass is made where the input is."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.cpu_tensors import cpu_tensors
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        return x + {added}

model = Net().to({device})
model(batch)
"""


@pytest.mark.parametrize(
    ("made", "added", "device", "kept"),
    [
        ("pass", "torch.zeros(4)", '"cuda"', [False]),
        ("self.shift = torch.zeros(4)", "self.shift", '"cuda"', [True]),
        ("pass", "torch.zeros(4, device=x.device)", '"cuda"', []),
        ("pass", "torch.zeros(4)", '"cpu"', []),
    ],
)
def test_a_tensor_that_stays(made: str, added: str, device: str, kept: list[bool]) -> None:
    run = script(PROGRAM, made=made, added=added, device=device)
    found = each_place(run, cpu_tensors, lambda tensor: tensor.made.node)
    assert [tensor.is_kept for tensor in found] == kept
