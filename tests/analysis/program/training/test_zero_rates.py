"""Learning rates of zero, from the beginning or too soon."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.zero_rates import early_ends, zero_rates
from traindx.examples import template

_program = template(
    """
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr={rate})
fade = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.0, 1 - i / {steps}))
for epoch in range(epochs):
    for x, y in loader:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()
        fade.step()
""",
    rate="0.1",
    steps=10_000,
)


@pytest.mark.parametrize(("rate", "kinds"), [("0", {"Adam"}), ("0.0", {"Adam"}), ("0.1", set())])
def test_a_rate_of_zero(rate: str, kinds: set[str]) -> None:
    (story,) = program_of(_program(rate)).stories
    assert {kind for kind, _ in zero_rates(story)} == kinds


@pytest.mark.parametrize(("steps", "ends"), [(10, {10}), (10_000, set())])
def test_a_schedule_that_ends_at_zero(steps: int, ends: set[int]) -> None:
    (story,) = program_of(_program(steps=steps)).stories
    assert {end for _, end in early_ends(story)} == ends
