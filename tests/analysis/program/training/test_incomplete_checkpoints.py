"""A checkpoint to go on from holds all that a step changes."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.incomplete_checkpoints import (
    restarted_schedules,
    without_moments,
    without_optimizer,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
sched = torch.optim.lr_scheduler.StepLR(opt, 10)
{resume}
for x, y in loader:
    opt.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    opt.step()
    sched.step()
torch.save({{"net": net.state_dict(), {more}}}, "last.pt")
"""
RESUME = """
saved = torch.load("last.pt")
net.load_state_dict(saved["net"])
opt.load_state_dict(saved["opt"])
"""
OPT, SCHED = '"opt": opt.state_dict()', '"sched": sched.state_dict()'


@pytest.mark.parametrize(
    ("resume", "more", "missing"),
    [
        ("", SCHED, (1, 0, 0)),
        ("", f"{OPT}, {SCHED}", (0, 0, 0)),
        ("", '"groups": opt.param_groups', (0, 1, 0)),
        (RESUME, OPT, (0, 0, 1)),
        (RESUME, f"{OPT}, {SCHED}", (0, 0, 0)),
    ],
)
def test_what_is_missing(resume: str, more: str, missing: tuple[int, int, int]) -> None:
    program = program_of(script(PROGRAM, resume=resume, more=more))
    (story,) = program.stories
    found = (
        without_optimizer(program, story),
        without_moments(story),
        restarted_schedules(program, story),
    )
    assert tuple(len(list(f)) for f in found) == missing
