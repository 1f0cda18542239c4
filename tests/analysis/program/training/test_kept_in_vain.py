"""Graphs that are kept in vain, and losses of which only the last batch is learnt from."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.graphs import last_batch_learnt, needlessly_kept
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

START = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for x, y in train_loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        {inside}
    {behind}
"""


@pytest.mark.parametrize(
    ("inside", "count"),
    [
        ("loss.backward(retain_graph=True); optimizer.step()", 1),
        ("loss.backward(); optimizer.step()", 0),
        ("loss.backward(retain_graph=True); (2 * loss).backward(); optimizer.step()", 0),
        ("loss.backward(retain_graph=True, create_graph=True); optimizer.step()", 0),
    ],
)
def test_needlessly_kept(inside: str, count: int) -> None:
    run = script(START, inside=inside, behind="pass")
    assert len(list(each_place(run, needlessly_kept, lambda d: d.event.node))) == count


@pytest.mark.parametrize(
    ("inside", "behind", "count"),
    [
        ("pass", "loss.backward(); optimizer.step()", 1),
        ("total = total + loss", "total.backward(); optimizer.step()", 0),
        ("loss.backward(); optimizer.step()", "pass", 0),
    ],
)
def test_last_batch_learnt(inside: str, behind: str, count: int) -> None:
    run = script(START, inside=inside, behind=behind)
    found = list(each_place(run, last_batch_learnt, lambda pair: pair[1].event.node))
    assert len(found) == count
    assert all(forward.event.order < backward.event.order for forward, backward in found)
