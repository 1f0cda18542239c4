"""Losses that do not fit the outputs or the labels."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.loss_fit import misfit_losses
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_program = template(
    """
from torchvision import datasets

net = nn.Linear(784, {units})
loader = DataLoader(datasets.MNIST("data"), 32)
for x, y in loader:
    nn.{loss}()(net(x.flatten(1)), y).backward()
{after}
""",
    "units",
    "loss",
    after="",
)


@pytest.mark.parametrize(
    ("units", "loss", "why"),
    [
        (10, "MSELoss", "between 10 outputs and class labels"),
        (10, "CrossEntropyLoss", None),
        (1, "CrossEntropyLoss", "over a single output is always 0"),
    ],
)
def test_what_a_loss_takes_outputs_for(units: int, loss: str, why: str | None) -> None:
    found = [misfit.why for misfit in misfit_losses(program_of(_program(units, loss)))]
    assert (why in found[0] if why else not found) and len(found) < 2


def test_a_sigmoid_of_what_cross_entropy_trains() -> None:
    run = _program(10, "CrossEntropyLoss", after="tags = torch.sigmoid(net(held_out)) > 0.5")
    (found,) = misfit_losses(program_of(run))
    assert found.shows == "a sigmoid of the same output"
