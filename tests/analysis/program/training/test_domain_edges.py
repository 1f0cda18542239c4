"""What is exactly 0 at times, and which scores have no bound."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.domain_edges import is_unbounded, reaches_zero
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


def value_of(expression: str) -> Value:
    text = (
        f"import torch\nfrom torch import nn\nlayer = nn.Linear(4, 4)\nlast = ({expression}) * 1\n"
    )
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    made = story.events[-1]
    return made.args[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.relu(layer(x)) ** 2", True),
        ("layer(x).masked_fill(m, float('-inf')).softmax(-1)", True),
        ("1 - torch.tanh(layer(x)) ** 2", True),
        ("torch.relu(layer(x)) + 1e-6", False),
        ("layer(x).softmax(-1)", False),
    ],
)
def test_what_reaches_zero(expression: str, expected: bool) -> None:
    assert reaches_zero(value_of(expression)) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("layer(x) @ layer(y).T / 2", True),
        ("nn.functional.normalize(layer(x)) @ nn.functional.normalize(layer(y)).T", False),
        ("torch.tanh(layer(x))", False),
        ("x", False),
    ],
)
def test_scores_without_bound(expression: str, expected: bool) -> None:
    assert is_unbounded(value_of(expression)) is expected
