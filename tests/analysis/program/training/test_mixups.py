"""A call gets of a model what it needs."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.mixups import mixups
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch

model = torch.nn.Linear(4, 2)
{call}
"""


@pytest.mark.parametrize(
    ("call", "got"),
    [
        ("torch.optim.SGD(model, lr=0.1)", ["the model itself"]),
        ("torch.optim.SGD(model.parameters, lr=0.1)", ["a method that is not called"]),
        ("model.load_state_dict('best.pt')", ["the name of a file"]),
        ("torch.optim.SGD(model.parameters(), lr=0.1)", []),
    ],
)
def test_something_else_of_a_model(call: str, got: list[str]) -> None:
    run = script(PROGRAM, call=call)
    assert [mixup.got for mixup in each_place(run, mixups, lambda mixup: mixup.call.node)] == got
