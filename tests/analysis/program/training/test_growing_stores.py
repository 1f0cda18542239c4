"""Lists and caches that keep more with every epoch."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.growing_stores import growing_stores
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import functools
import torch
from collections import deque
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8)
kept, last = {made}, None
for epoch in range(9):
    {first}
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
"""


@pytest.mark.parametrize(
    ("made", "first", "step", "grows"),
    [
        ("[]", "pass", "kept.append(x)", True),
        ("[]", "pass", "kept.append(out.detach().cpu().numpy())", True),
        ("[]", "pass", "kept.append({'x': x, 'epoch': epoch})", True),
        ("[]", "kept = []", "kept.append(x)", False),
        ("[]", "pass", "kept.append(loss.item())", False),
        ("deque(maxlen=9)", "pass", "kept.append(x)", False),
        ("[]", "pass", "kept.append(x); kept.pop(0)", False),
        ("dict()", "pass", "kept[epoch, 'x'] = x.numpy()", True),
        ("dict()", "pass", "kept['x'] = x.numpy()", False),
    ],
)
def test_what_grows_with_every_epoch(made: str, first: str, step: str, grows: bool) -> None:
    text = PROGRAM.format(made=made, first=first, step=step)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(growing_stores(story))) is grows
