"""Averages of weights that training moves on, and whether a checkpoint holds them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.weight_averages import lost_averages, weight_averages
from traindx.examples import script

PROGRAM = """
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
ema = {{k: v.clone() for k, v in net.state_dict().items()}}
saved = torch.load("last.pt")
net.load_state_dict(saved["net"])
opt.load_state_dict(saved["opt"])
for x, y in loader:
    opt.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    opt.step()
    {move}
torch.save({{"net": net.state_dict(), "opt": opt.state_dict(){more}}}, "last.pt")
"""
MOVE = "for k, v in net.state_dict().items(): ema[k].mul_(0.9).add_(v, alpha=0.1)"


@pytest.mark.parametrize(
    ("move", "more", "count", "lost"),
    [
        (MOVE, "", True, True),
        (MOVE, ', "ema": ema', True, False),
        ("for k, v in net.state_dict().items(): ema[k].copy_(v)", "", False, False),
        ("for p in net.parameters(): p.data.add_(p.grad, alpha=-0.1)", "", False, False),
    ],
)
def test_averages(move: str, more: str, count: bool, lost: bool) -> None:
    program = program_of(script(PROGRAM, move=move, more=more))
    (story,) = program.stories
    assert bool(list(weight_averages(story))) is count
    assert bool(list(lost_averages(program, story))) is lost
