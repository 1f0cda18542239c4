"""A tensor that autograd saved may not be changed before backward."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.saved_tensors import overwritten
from traindx.examples import make_run

PROGRAM = """
import torch
from torch import nn

body, head = nn.Linear(8, 8), nn.Linear(8, 2)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(100, 4, 8):
    h = body(x)
    {change}
    loss = head(h).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ("h /= h.std(1, keepdim=True)", 1),
        ("h.div_(h.norm())", 1),
        ("h = torch.relu(h); h += x", 1),
        ("h = torch.sigmoid(h); h[:, 0] = 0", 1),
        ("h = torch.exp(h); h[:, :2].mul_(2)", 1),
        ("g = body(h); h.add_(1); h = h + g", 1),
        ("h -= h.mean(1, keepdim=True)", 0),
        ("h = torch.relu(h); h = h + x", 0),
        ("h = torch.sigmoid(h).clone(); h[:, 0] = 0", 0),
        ("h = torch.sigmoid(h); seen = h.detach().clone(); seen += 1", 0),
        ("h = torch.exp(h); rows = h[[0, 1]]; rows += 1", 0),
        ("h += x; h = torch.tanh(h)", 0),
    ],
)
def test_a_saved_tensor_that_is_changed(change: str, count: int) -> None:
    (story,) = program_of(make_run(sources={"a.py": PROGRAM.format(change=change)})).stories
    assert len({found.change.node for found in overwritten(story)}) == count
