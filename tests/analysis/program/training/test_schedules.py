"""What a schedule counts, how often it is stepped, and where it ends."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.phases import Unit
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.schedules import (
    Schedule,
    idle_schedules,
    pace_of,
    schedules_of,
)
from traindx.examples import make_run, script

PROGRAM = """
import torch
import math
ROUNDS = 20
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.{made}
for turn in range(ROUNDS):
    for x, y in loader:
        opt.zero_grad()
        criterion(net(x), y).backward()
        opt.step()
        {inner}
    {outer}
"""


def _schedule(made: str, inner: str = "pass", outer: str = "sched.step()") -> Schedule:
    text = PROGRAM.format(made=made, inner=inner, outer=outer)
    (found,) = schedules_of(program_of(make_run(sources={"t.py": text})).stories[0])
    return found


@pytest.mark.parametrize(
    ("made", "unit"),
    [
        ("CosineAnnealingLR(opt, T_max=ROUNDS)", Unit.EPOCHS),
        ("StepLR(opt, ROUNDS // 2)", Unit.EPOCHS),
        ("CosineAnnealingLR(opt, ROUNDS * len(loader))", Unit.BATCHES),
        ("CosineAnnealingLR(opt, ROUNDS * many)", None),
        ("CosineAnnealingLR(opt, T_max=args.epochs)", Unit.EPOCHS),
        ("StepLR(opt, 20)", None),
        ("StepLR(opt, args.lr_decay_steps)", None),
        ("CosineAnnealingLR(opt, args.total_steps)", Unit.BATCHES),
        ("LambdaLR(opt, lambda i: min(1, i / args.warmup_steps))", Unit.BATCHES),
        ("OneCycleLR(opt, 0.1, steps_per_epoch=len(loader), epochs=ROUNDS)", Unit.BATCHES),
    ],
)
def test_the_unit_of_a_length(made: str, unit: Unit | None) -> None:
    assert _schedule(made).unit is unit


def test_the_pace_is_that_of_the_loop_around() -> None:
    per_epoch = _schedule("ExponentialLR(opt, 0.9)")
    assert [pace_of(per_epoch.story, s.event) for s in per_epoch.steps] == [Unit.EPOCHS]
    per_batch = _schedule("ExponentialLR(opt, 0.9)", "sched.step()", "pass")
    assert [pace_of(per_batch.story, s.event) for s in per_batch.steps] == [Unit.BATCHES]


def test_a_function_is_asked_for_its_factors() -> None:
    assert _schedule("LambdaLR(opt, lambda i: max(0.0, 1 - i / 20))").ends_at == 20
    assert _schedule("LambdaLR(opt, lambda i: 0.5 * (1 + math.cos(i)))").ends_at is None
    assert _schedule("LambdaLR(opt, factor)").ends_at is None


def test_a_steep_fall_is_counted() -> None:
    assert round(_schedule("StepLR(opt, 7)").steps_to(1e-6)) == 42
    assert _schedule("StepLR(opt, many)").steps_to(1e-6) == float("inf")


LIGHTNING = """
import lightning as L
import torch

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.fc(batch).mean()

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
        return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "unit"),
    [
        ("[opt], [sched]", Unit.EPOCHS),
        ("{'optimizer': opt, 'lr_scheduler': sched}", Unit.EPOCHS),
        ("[opt], [{'scheduler': sched, 'interval': 'step'}]", Unit.BATCHES),
    ],
)
def test_lightning_steps_what_it_is_given(returned: str, unit: Unit) -> None:
    text = LIGHTNING.replace("{returned}", returned)
    stories = program_of(make_run(sources={"t.py": text})).stories
    found = [s for story in stories for s in schedules_of(story) if s.steps]
    assert {pace_of(s.story, d.event) for s in found for d in s.steps} == {unit}


MANY = """
import torch
from torch import nn
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
every = 4
{before}
for epoch in range(10):
    {first}
    for i, (x, y) in enumerate(loader):
        nn.functional.cross_entropy(net(x), y).backward()
        if (i + 1) % every == 0:
            opt.step()
        {inner}
    {last}
"""


def schedule_in(**parts: str) -> Schedule:
    text = MANY.format(**{**dict.fromkeys(("before", "first", "inner", "last"), "pass"), **parts})
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    return schedules_of(story)[0]


STEP_LR = "s = torch.optim.lr_scheduler.StepLR(opt, 5)"


def test_a_schedule_of_an_optimizer_that_was_replaced() -> None:
    other = f"{STEP_LR}\nopt = torch.optim.Adam(net.parameters())"
    assert schedule_in(before=other, last="s.step()").replaced is not None
    assert schedule_in(before=STEP_LR, last="s.step()").replaced is None


def test_a_schedule_that_is_made_anew() -> None:
    assert schedule_in(first=STEP_LR, last="s.step()").made_anew is not None
    assert schedule_in(before=STEP_LR, last="s.step()").made_anew is None


def test_a_schedule_that_does_not_wait_for_updates() -> None:
    made = "s = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10 * len(loader) // every)"
    assert schedule_in(before=made, inner="s.step()").unwaited is not None
    assert schedule_in(before=STEP_LR, inner="s.step()").unwaited is None


@pytest.mark.parametrize(("line", "count"), [("pass", 1), ("sched.step()", 0), ("run(sched)", 0)])
def test_idle_schedules(line: str, count: int) -> None:
    text = (
        "import torch\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        f"sched = torch.optim.lr_scheduler.StepLR(opt, 3)\nopt.step()\n{line}\n"
    )
    assert len(list(idle_schedules(program_of(script(text))))) == count
