"""What is exactly 0 at times, and which scores have no bound."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.domain_edges import (
    is_unbounded,
    reaches_zero,
    unguarded_edges,
)
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
        ("torch.relu(layer(x)) / torch.relu(layer(x)).sum()", True),
        ("torch.relu(layer(x))[:, :3]", True),
        ("torch.relu(layer(x))[:, labels]", False),
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


@pytest.mark.parametrize(
    ("expression", "reached"),
    [
        ("-torch.log(torch.relu(layer(x))).mean()", [True]),
        ("(layer(x) / layer(x).norm(dim=1)).mean()", [False]),
        ("-layer(x).log_softmax(-1).mean()", []),
        ("layer(x).clamp(max=1, min=-1).acos().mean()", [True]),
        ("torch.asin(torch.clamp(layer(x), -0.99, 0.99)).mean()", []),
        ("torch.log(layer(x).clamp(min=0)).mean()", [True]),
        ("torch.log(layer(x).clamp(min=1e-6, max=1)).mean()", []),
    ],
)
def test_edges_of_what_is_minimised(expression: str, reached: list[bool]) -> None:
    made = "import torch\nfrom torch import nn\nlayer = nn.Linear(4, 4)\n"
    text = f"{made}({expression}).backward()\n"
    (story,) = program_of(make_run(sources={"train.py": text})).stories
    assert [found.is_reached for found in unguarded_edges(story)] == reached
