"""Small updates of weights in half precision are lost."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.lossy_weights import lossy_weights
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
net = nn.Linear(4, 2)
{convert}
opt = torch.optim.{optimizer}
for x, y in loader:
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("convert", "optimizer", "dtypes"),
    [
        ("net.half()", "SGD(net.parameters(), lr=0.1)", ["float16"]),
        ("net.bfloat16()", "AdamW(net.parameters(), lr=1e-5)", ["bfloat16"]),
        ("net.bfloat16()", "AdamW(net.parameters(), lr=1e-2)", []),
        ("net.bfloat16()", "SGD(net.parameters(), lr=1e-3, momentum=0.9)", ["bfloat16"]),
        ("net.bfloat16()", "SGD(net.parameters(), lr=0.1)", []),
        ("net.half().float()", "SGD(net.parameters(), lr=0.1)", []),
    ],
)
def test_updates_that_are_lost(convert: str, optimizer: str, dtypes: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, convert=convert, optimizer=optimizer)).stories
    assert [*dict.fromkeys(f.conversion.dtype for f in lossy_weights(story))] == dtypes
