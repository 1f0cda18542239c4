"""How far a step can move where gradients are bounded."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.gradient_bounds import (
    gradient_bounds,
    step_sizes,
    tight_bounds,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

HEAD = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n"


def story_of(text: str) -> Story:
    return program_of(make_run(sources={"train.py": HEAD + text})).stories[0]


@pytest.mark.parametrize(
    ("line", "limit", "is_norm"),
    [
        ("nn.utils.clip_grad_norm_(net.parameters(), 0.5)", 0.5, True),
        ("nn.utils.clip_grad_value_(net.parameters(), clip_value=0.1)", 0.1, False),
        ("[p.grad.clamp_(-0.2, 0.2) for p in net.parameters()]", 0.2, False),
        ("[p.grad.mul_(2.0 / p.grad.norm()) for p in net.parameters()]", 2.0, True),
    ],
)
def test_a_bound_in_any_form(line: str, limit: float, is_norm: bool) -> None:
    found = {(b.limit, b.is_norm) for b in gradient_bounds(story_of(line))}
    assert found == {(limit, is_norm)}


@pytest.mark.parametrize(
    ("optimizer", "gain"),
    [
        ("SGD(net.parameters(), lr=0.1)", 0.1),
        ("SGD(net.parameters(), 0.1, momentum=0.5)", 0.2),
        ("Adam(net.parameters())", None),
    ],
)
def test_how_far_a_gradient_moves(optimizer: str, gain: float | None) -> None:
    sizes = step_sizes(story_of(f"optimizer = torch.optim.{optimizer}"))
    assert sizes is not None and [s.gain for s in sizes] == [gain]


def test_a_rate_out_of_sight_is_unknown() -> None:
    assert step_sizes(story_of("o = torch.optim.SGD(net.parameters(), lr=rate)")) is None


@pytest.mark.parametrize(
    ("bound", "optimizer", "is_tight"),
    [
        ("1e-4", "SGD(net.parameters(), lr=0.01)", True),
        ("1.0", "SGD(net.parameters(), lr=0.01)", False),
        ("1e-3", "Adam(net.parameters())", False),
        ("1e-8", "Adam(net.parameters())", True),
    ],
)
def test_a_bound_that_leaves_no_step(bound: str, optimizer: str, is_tight: bool) -> None:
    text = f"""
opt = torch.optim.{optimizer}
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    nn.utils.clip_grad_norm_(net.parameters(), {bound})
    opt.step()
"""
    assert bool(tight_bounds(story_of(text))) is is_tight
