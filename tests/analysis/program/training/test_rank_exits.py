"""Loops that ranks leave one by one, or all together."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.rank_exits import lone_exits
from traindx.examples import template

_program = template(
    """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

class Stopper:
    def __init__(self):
        self.best, self.bad, self.stop = float("inf"), 0, False
    def update(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        self.stop = self.bad > 3

net = torch.nn.Linear(4, 1)
model = DistributedDataParallel(net)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
held = DataLoader(rest, batch_size=8, sampler={sampler})
stopper = Stopper()
for epoch in range(100):
    for i, (x, y) in enumerate(train):
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        {step}
    total = torch.zeros(())
    with torch.no_grad():
        for x, y in held:
            total += torch.nn.functional.mse_loss(net(x), y)
    {epoch}
""",
    "epoch",
    step="pass",
    sampler="DistributedSampler(rest)",
)
STOPS = "stopper.update(total.item())\n    if stopper.stop:\n        break"


@pytest.mark.parametrize(
    ("epoch", "others", "is_alone"),
    [
        (STOPS, {}, True),
        ("if total < 0.1:\n        break", {}, True),
        ("if loss.item() < 0.1:\n        break", {}, True),
        ("pass", {"step": "if loss < 1e-3: break"}, True),
        ("dist.all_reduce(total)\n    " + STOPS, {}, False),
        (STOPS, {"sampler": "None"}, False),
        ("if epoch > 3:\n        break", {}, False),
        ("if not torch.isfinite(total):\n        break", {}, False),
        ("pass", {"step": "if i >= limit: break"}, False),
    ],
)
def test_lone_exits(epoch: str, others: dict[str, str], is_alone: bool) -> None:
    (story,) = program_of(_program(epoch, **others)).stories
    assert bool(list(lone_exits(story))) is is_alone
