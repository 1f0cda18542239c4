"""Which layers of a program are one linear map."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.linear_stacks import linear_stacks
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_chain = template("{name} = nn.Sequential({layers})\n", "layers", name="model")
THREE = "nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)"


@pytest.mark.parametrize(
    ("layers", "stacks"),
    [
        (THREE, [(3, 0)]),
        ("nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 16)", [(2, 1)]),
        ("nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16)", []),
        ("nn.Linear(64, 2), nn.Linear(2, 64)", []),
    ],
)
def test_layers_without_a_nonlinearity(layers: str, stacks: list[tuple[int, int]]) -> None:
    found = linear_stacks(program_of(_chain(layers)))
    assert [(len(stack.layers), stack.pairs) for stack in found] == stacks


def test_a_pair_knows_its_sequential() -> None:
    (pair,) = linear_stacks(program_of(_chain("nn.Linear(8, 8), nn.Linear(8, 8)")))
    assert pair.is_in_sequential


def test_a_model_may_be_linear_on_purpose() -> None:
    assert not [*linear_stacks(program_of(_chain(THREE, name="deep_linear")))]
