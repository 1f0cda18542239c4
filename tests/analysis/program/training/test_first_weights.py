"""Initial weights and learning rates that are out of scale."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.excessive_rates import excessive_rates
from traindx.analysis.program.training.initial_scale import misscaled_draws
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_program = template(
    """
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
for layer in (net[0], net[2]):
    nn.init.normal_(layer.weight, std={std})
opt = torch.optim.{optimizer}
for x, y in loader:
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
""",
    std="0.1",
    optimizer="SGD(net.parameters(), lr=0.1)",
)


@pytest.mark.parametrize(("std", "is_large"), [("5.0", {True}), ("1e-5", {False}), ("0.1", set())])
def test_the_spread_of_weights(std: str, is_large: set[bool]) -> None:
    (story,) = program_of(_program(std)).stories
    assert {found.is_large for found in misscaled_draws(story)} == is_large


@pytest.mark.parametrize(
    ("optimizer", "rates"),
    [
        ("Adam(net.parameters(), lr=1.0)", {1.0}),
        ("Adam(net.parameters(), lr=1e-3)", set()),
        ("SGD(net.parameters(), lr=50.0)", {50.0}),
        ("SGD(net.parameters(), lr=1.0)", set()),
    ],
)
def test_rates_that_are_too_high(optimizer: str, rates: set[float]) -> None:
    (story,) = program_of(_program(optimizer=optimizer)).stories
    assert {rate for _, rate in excessive_rates(story)} == rates
