"""Permutations that are drawn, and whether any batch is taken by them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.shuffled_copies import unread_orders
from traindx.examples import script

PROGRAM = """
import numpy as np
import torch
from torch import nn
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    order = {drawn}
    {batches}
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BY_PLACE = "for i in range(0, len(order), 32):\n        xb, yb = X[i:i + 32], y[i:i + 32]"
BY_PIECE = (
    "for i in range(0, len(X), 32):\n        pick = order[i:i + 32]\n        xb, yb = {picked}"
)
MIXED = "X, y = X[order], y[order]\n    "


@pytest.mark.parametrize(
    ("drawn", "batches", "is_unread"),
    [
        ("torch.randperm(len(X))", BY_PLACE, True),
        ("np.random.permutation(len(X))", BY_PLACE, True),
        ("np.random.default_rng(0).permutation(900)", BY_PLACE, True),
        ("torch.randperm(len(X))", BY_PIECE.format(picked="X[i:i + 32], y[i:i + 32]"), True),
        ("torch.randperm(len(X))", BY_PIECE.format(picked="X[pick], y[pick]"), False),
        ("torch.randperm(len(X))", MIXED + BY_PLACE, False),
        ("torch.randperm(len(X))", "for i in order:\n        xb, yb = X[i], y[i]", False),
        ("torch.randperm(len(X))", "for i in order.split(32):\n        xb, yb = X[i], y[i]", False),
        ("torch.randperm(len(X))", "for xb, yb in batches(X, y, order):", False),
        ("torch.arange(len(X))", BY_PLACE, False),
    ],
)
def test_orders_that_nothing_reads(drawn: str, batches: str, is_unread: bool) -> None:
    (story,) = program_of(script(PROGRAM, drawn=drawn, batches=batches)).stories
    assert bool(list(unread_orders(story))) is is_unread
