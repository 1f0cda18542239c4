"""Gradients that add up over batches without the loss being divided."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.accumulation import unscaled_accumulations
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_loop = template(
    """
model = nn.Linear(4, 2)
optimizer = torch.optim.{optimizer}(model.parameters(), lr={rate})
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y){divided}
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    divided="",
    optimizer="SGD",
    rate="0.1",
)


@pytest.mark.parametrize(
    ("parts", "rescaled"),
    [
        ({}, [False]),
        ({"optimizer": "Adam"}, [True]),
        ({"divided": " / 4"}, []),
        ({"rate": "0.1 / count"}, []),
    ],
)
def test_a_sum_over_batches(parts: dict[str, str], rescaled: list[bool]) -> None:
    (story,) = program_of(_loop(**parts)).stories
    found = {u.backward.event.node: u for u in unscaled_accumulations(story)}
    assert [u.is_rescaled for u in found.values()] == rescaled
