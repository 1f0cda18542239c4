"""The shape of a tensor, as far as the source shows it."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.shapes import Shape, last_size, shape_of
from traindx.examples import make_run

TEXT = """
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(50, 3)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
for a, b in DataLoader(TensorDataset(x, torch.zeros(50)), 8):
    pass
for c, d in DataLoader(batch_size=8, dataset=TensorDataset(x, torch.zeros(50))):
    pass
print({expression})
"""


def _value(expression: str) -> object:
    run = make_run(sources={"t.py": TEXT.format(expression=expression)})
    events = program_of(run).stories[0].events
    return next(e for e in events if e.name == "builtins.print").args[0]


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("net(x)", (50, 1)),
        ("torch.cat([a, a])", (None, 3)),
        ("torch.stack([b, b])", (2, None)),
        ("x[torch.randperm(50)[:8]]", (None, 3)),
        ("x.split(1, dim=1)[0]", (50, 1)),
        ("net(x).max(1)[0]", (50,)),
        ("net(x).max(1, keepdim=True)[0]", (50, 1)),
        ("b", (None,)),
        ("d", (None,)),
        ("net(x).squeeze(1)", (50,)),
        ("x[:, 0]", (50,)),
        ("x[:, 0:1]", (50, 1)),
        ("x[:, 0][:, None]", (50, 1)),
        ("x.mean(1)", (50,)),
        ("x.mean(1, keepdim=True)", (50, 1)),
        ("x.max(1).values", (50,)),
        ("x @ torch.ones(3, 1)", (50, 1)),
        ("net(x) - x[:, 0]", (50, 50)),
        ("torch.tensor([0.0, 1.0])", (2,)),
        ("unknown(x)", None),
        ("net(unknown)", None),
        ("a", (None, 3)),
        ("b", (None,)),
        ("x.view(-1)", (None,)),
        ('torch.tensor(frame["price"].values)', (None,)),
        ('torch.tensor(arrays["price"])', None),
    ],
)
def test_shapes(expression: str, shape: Shape | None) -> None:
    assert shape_of(_value(expression)) == shape  # type: ignore[arg-type]


def test_the_last_size_where_the_rank_is_not_known() -> None:
    assert last_size(_value("net(unknown)")) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["float('-inf')", "-math.inf", "-torch.inf", "-float('inf')"])
def test_infinities(written: str) -> None:
    assert number_of(_value(written)) == float("-inf")  # type: ignore[arg-type]
