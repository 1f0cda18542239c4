"""Metrics that compare every prediction with every label."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.pairing import crossed_metrics
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import torch
from torch import nn
net = nn.Linear(8, 1)
for x, y in val_loader:
    out = net(x)
    loss = nn.functional.binary_cross_entropy_with_logits(out, {target})
    print(loss, ({hits}).float().mean())
"""


@pytest.mark.parametrize(
    ("hits", "target", "is_crossed"),
    [
        ("(out > 0).long() == y", "y.unsqueeze(1)", True),
        ("y.eq(out.sigmoid().round())", "y[:, None].float()", True),
        ("(out > 0).long() == y.unsqueeze(1)", "y.unsqueeze(1)", False),
        ("(out.squeeze(1) > 0).long() == y", "y.unsqueeze(1)", False),
        ("(out > 0).long() == y", "y.float()", False),
    ],
)
def test_crossed_metrics(hits: str, target: str, is_crossed: bool) -> None:
    story = program_of(script(TEXT, hits=hits, target=target)).stories[0]
    assert any(crossed_metrics(story)) == is_crossed
