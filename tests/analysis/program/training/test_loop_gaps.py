"""Backward passes and steps that a training loop leaves out, or makes useless."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.cleared_gradients import (
    cleared_updates,
    short_accumulations,
)
from traindx.analysis.program.training.loop_gaps import barren_steps, unapplied_backwards
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import template

_loop = template(
    """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y)
    {body}
""",
    "body",
)
CLEAR, BACKWARD, STEP = "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"


def _story(*body: str) -> Story:
    (story,) = program_of(_loop("\n    ".join(body))).stories
    return story


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ((CLEAR, STEP), {"loss"}),
        ((CLEAR, "total = loss + 0.1", STEP), {""}),
        ((CLEAR, BACKWARD, STEP), set()),
        ((CLEAR, "engine.run(loss)", STEP), set()),
    ],
)
def test_a_step_without_gradients(body: tuple[str, ...], names: set[str]) -> None:
    assert {barren.loss_name for barren in barren_steps(_story(*body))} == names


@pytest.mark.parametrize(
    ("more", "is_found"),
    [("pass", True), (STEP, False), ("finish(optimizer)", False), ("norm = x.grad.norm()", False)],
)
def test_gradients_that_nothing_applies(more: str, is_found: bool) -> None:
    assert bool([*unapplied_backwards(_story(CLEAR, BACKWARD, more))]) is is_found


def test_gradients_that_are_cleared_before_the_step() -> None:
    assert [*cleared_updates(_story(BACKWARD, CLEAR, STEP))]
    assert not [*cleared_updates(_story(CLEAR, BACKWARD, STEP))]
    assert not [*cleared_updates(_story(BACKWARD, CLEAR, "share(model)", STEP))]


def test_gradients_that_are_cleared_while_the_step_waits() -> None:
    waits = ("if (i + 1) % 4 == 0:", "    optimizer.step()")
    assert [*short_accumulations(_story(CLEAR, BACKWARD, *waits))]
    assert not [*short_accumulations(_story(BACKWARD, *waits, "    optimizer.zero_grad()"))]
