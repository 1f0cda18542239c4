"""The state of the optimizer comes back to the optimizer that trains."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.lost_optimizer_state import (
    replaced_optimizers,
    unread_states,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
saved = torch.load("last.pt")
net.load_state_dict(saved["net"])
start = saved["epoch"]
{restore}
for epoch in range(start, 10):
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        opt.step()
torch.save({{"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}}, "last.pt")
"""
LOAD = 'opt.load_state_dict(saved["opt"])'


@pytest.mark.parametrize(
    ("restore", "unread", "replaced"),
    [
        ("", 1, []),
        (LOAD, 0, []),
        (f"{LOAD}; opt = torch.optim.Adam(net.parameters())", 0, [True]),
        ("more(saved)", 0, []),
        ('opt.state_dict().update(saved["opt"])', 1, []),
        ('opt.state_dict()["state"] = saved["opt"]["state"]', 0, []),
        ('s = opt.state_dict(); s.update(saved["opt"]); opt.load_state_dict(s)', 0, []),
        ('for g, h in zip(opt.param_groups, saved["opt"]["param_groups"]): g.update(h)', 1, []),
        ('opt.state.update(saved["opt"]["state"])', 0, []),
    ],
)
def test_lost_states(restore: str, unread: int, replaced: list[bool]) -> None:
    program = program_of(script(PROGRAM, restore=restore))
    (story,) = program.stories
    found = list(unread_states(program, story))
    assert len(found) == unread
    assert all(LOAD in (state.patch() or "") for state in found)
    assert [old.is_later for old in replaced_optimizers(story)] == replaced
