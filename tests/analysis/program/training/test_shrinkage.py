"""Weights that a program makes smaller in every step."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.shrinkage import shrinkages
from traindx.examples import make_run

PROGRAM = """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
other = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    for p, q in zip(net.parameters(), other.parameters()):
        {update}
"""


@pytest.mark.parametrize(
    ("update", "share"),
    [
        ("p.data.mul_(0.75)", 0.25),
        ("p.data *= 1 - 0.25", 0.25),
        ("p.data.add_(p.data, alpha=-0.25)", 0.25),
        ("p.data = p.data - 0.5 * 0.5 * p.data", 0.25),
        ("p.data.div_(4 / 3)", 0.25),
        ("p.data.mul_(factor)", None),
        ("p.data.clamp_(-1, 1)", None),
        ("q.data.mul_(0.75).add_(p.data, alpha=0.25)", None),
        ("p.data.mul_(0.75).add_(torch.randn_like(p) * 0.1)", None),
        ("p.data = 0.75 * p.data + 0.25 * q.data", None),
    ],
)
def test_shrinkages(update: str, share: float | None) -> None:
    text = PROGRAM.format(update=update)
    (story,) = program_of(make_run(sources={"train.py": text})).stories
    found = {round(s.share, 6) for s in shrinkages(story)}
    assert found == (set() if share is None else {share})
