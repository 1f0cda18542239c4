"""Whether a position in the data that a checkpoint restored is there when the data are read."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.resumed_order import overwritten_positions
from traindx.examples import make_run

PROGRAM = """
import os
import torch
from torch.utils.data import DataLoader, Sampler

class Order(Sampler):
    def __init__(self, count):
        self.count, self.epoch, self.seen = count, 0, 0
    def set_epoch(self, epoch):
        {begin}
    def state_dict(self):
        return {{"epoch": self.epoch, "seen": self.seen}}
    def load_state_dict(self, state):
        self.epoch, self.seen = state["epoch"], state["seen"]
    def __iter__(self):
        order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.epoch))
        yield from order.tolist()[self.seen:]

order = Order(1000)
loader = DataLoader(data, 16, sampler=order)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
if os.path.exists("last.pt"):
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    order.load_state_dict(saved["order"])
for epoch in range(order.epoch, 9):
    {first}
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        order.seen += len(x)
        torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "order": order.state_dict()}}, "last.pt")
    {last}
"""


@pytest.mark.parametrize(
    ("begin", "first", "last", "names"),
    [
        ("self.epoch, self.seen = epoch, 0", "order.set_epoch(epoch)", "pass", ["seen"]),
        ("self.epoch = epoch", "order.seen = 0", "pass", ["seen"]),
        ("self.epoch = epoch", "order.set_epoch(epoch)", "order.seen = 0", []),
        (
            "if epoch != self.epoch:\n            self.epoch, self.seen = epoch, 0",
            "order.set_epoch(epoch)",
            "pass",
            [],
        ),
    ],
)
def test_positions(begin: str, first: str, last: str, names: list[str]) -> None:
    text = PROGRAM.replace("{{", "{").replace("}}", "}")
    text = text.replace("{begin}", begin).replace("{first}", first).replace("{last}", last)
    stories = program_of(make_run(sources={"t.py": text})).stories
    found = {o.name for story in stories for o in overwritten_positions(story)}
    assert sorted(found) == names
