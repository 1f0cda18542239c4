"""What layers, weights and optimizers of a project's own keep of how they were made."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Known, Value, constant, options_of
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import torch
from torch import nn

class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, decay=0.5):
        super().__init__(params, dict(lr=lr, decay=decay))

    def read(self):
        for group in self.param_groups:
            return group["decay"]

class Twice:
    def size(self):
        return 1

    def size(self):
        return 2

linear, conv = nn.Linear(3, 5), nn.Conv2d(4, 8, kernel_size=3)
own = Own(linear.parameters(), decay=0.25)
twice = Twice()
x = torch.randn(2, 3)
table = {{1: "a", 2: "b"}}
with torch.no_grad():
    free = linear(x)
asked = print({expression})
"""


def value_of(expression: str) -> Value:
    text = PROGRAM.format(expression=expression)
    (story, *_) = program_of(make_run(sources={"train.py": text})).stories
    return next(e.args[0] for e in story.events if e.name == "builtins.print")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("linear.in_features", 3),
        ("linear.weight.shape[0]", 5),
        ("linear.weight.size(-1)", 3),
        ("linear.bias.ndim", 1),
        ("conv.kernel_size[1]", 3),
        ("conv.weight.dim()", 4),
        ("own.read()", 0.25),
        ("own.param_groups[0]['lr']", 0.1),
        ("twice.size()", 2),
        ("free.requires_grad", False),
    ],
)
def test_kept(expression: str, expected: object) -> None:
    assert constant(value_of(expression)) == expected


def test_a_layer_keeps_no_size_that_it_was_not_given() -> None:
    assert constant(value_of("conv.padding")) is None


def test_a_key_that_nobody_knows_may_be_missing() -> None:
    found = options_of(value_of("table.get(unknown)"))
    assert {v.value for v in found if isinstance(v, Known)} == {"a", "b", None}
