"""The size of the dimension of the classes."""

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.widths import softmax_over_one
from traindx.examples import template

PROGRAM = template("""
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, {outputs}))
for x, y in loader:
    nn.functional.cross_entropy(model(x), y).backward()
""")


@pytest.mark.parametrize(("outputs", "is_one"), [(1, True), (2, False), ("count", False)])
def test_a_softmax_over_one_output(outputs: object, is_one: bool):
    assert (softmax_over_one(program_of(PROGRAM(outputs))) is not None) is is_one
