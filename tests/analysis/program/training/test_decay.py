"""How much of a weight each step takes away."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.decay import decays_of, penalties
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run


def story_of(term: str) -> Story:
    text = f"""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.2)
for x, y in loader:
    loss = nn.functional.cross_entropy(net(x), y)
    loss = loss + {term}
    loss.backward()
    opt.step()
"""
    return program_of(make_run(sources={"train.py": text})).stories[0]


@pytest.mark.parametrize(
    ("term", "amount", "is_square"),
    [
        ("0.5 * sum((p ** 2).sum() for p in net.parameters())", 1.0, True),
        ("sum(0.5 * p.pow(2).sum() for n, p in net.named_parameters())", 1.0, True),
        ("0.1 * sum(p.norm() ** 2 for p in net.parameters())", 0.2, True),
        ("0.1 * sum(torch.norm(p, 1) for p in net.parameters())", 0.1, False),
        ("0.3 * net[0].weight.abs().sum()", 0.3, False),
        ("torch.stack([p.square().sum() for p in net.parameters()]).sum()", 2.0, True),
    ],
)
def test_penalties(term: str, amount: float, is_square: bool) -> None:
    story = story_of(term)
    loss = story.does(Do.BACKWARD)[0].subject
    assert loss is not None
    [found] = penalties(story, loss)
    assert (found.amount, found.is_square) == (pytest.approx(amount), is_square)


@pytest.mark.parametrize(
    "term",
    [
        "net(x).pow(2).sum()",
        "sum((p ** 2).mean() for p in net.parameters())",
        "sum(((p - q) ** 2).sum() for p, q in zip(net.parameters(), old))",
        "scale * sum((p ** 2).sum() for p in net.parameters())",
    ],
)
def test_what_is_no_penalty(term: str) -> None:
    story = story_of(term)
    loss = story.does(Do.BACKWARD)[0].subject
    assert loss is not None
    assert penalties(story, loss) == []
    assert [(d.amount, d.share) for d in decays_of(story)][:1] == [(0.2, pytest.approx(0.02))]
