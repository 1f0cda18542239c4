"""Operations without a slope, and losses without a history."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.flat_operations import (
    flat_losses,
    flat_steps,
    name_of_flat,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.severance import unrecorded_losses
from traindx.examples import template

_loop = template(
    """
below, above = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*below.parameters(), *above.parameters()], lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    h = below(x)
    z = {hidden}
    with {context}:
        loss = F.mse_loss({output}, y)
    loss.backward()
    optimizer.step()
""",
    hidden="h",
    output="above(z)",
    context="torch.enable_grad()",
)


def _story(**parts: str) -> Story:
    (story,) = program_of(_loop(**parts)).stories
    return story


@pytest.mark.parametrize(
    ("hidden", "is_flat"),
    [("torch.sign(h)", True), ("h + (h.round() - h).detach()", False), ("torch.tanh(h)", False)],
)
def test_a_step_function_between_layers(hidden: str, is_flat: bool) -> None:
    assert bool([*flat_steps(_story(hidden=hidden))]) is is_flat


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("above(z).round()", {"round"}),
        ("(above(z) > 0.5).float()", {"a comparison"}),
        ("above(z)", set()),
    ],
)
def test_a_loss_without_a_slope(output: str, names: set[str]) -> None:
    found = flat_losses(_story(output=output))
    assert {name_of_flat(flat) for _, flat in found} == names


def test_a_loss_under_no_grad() -> None:
    lost = [*unrecorded_losses(_story(hidden="h.detach()", context="torch.no_grad()"))]
    assert lost and all(found.switch is not None for found in lost)
    assert not [*unrecorded_losses(_story())]
