"""The dimensions of tensors, as far as plain code says them."""

from __future__ import annotations

import ast

import pytest

from traindx.model import make_run
from traindx.source import project_of
from traindx.source.ranks import Dims, Ranks

HEAD = """
import numpy as np
import pandas as pd
import torch
from torch import nn

n = 100
x = torch.randn((n, 2))
w = torch.randn(2, 1, requires_grad=True)
table = torch.tensor(pd.read_csv("houses.csv").values)
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
squash = nn.Sigmoid()
"""


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("x[:, 0]", (100,)),
        ("3 * x[:, 0] - x[:, 1] + torch.randn(n)", (100,)),
        ("x[:, 0:1]", (100, 1)),
        ("x.mm(w)", (100, 1)),
        ("x @ w", (100, 1)),
        ("x @ torch.rand(2)", (100,)),
        ("model(x)", (100, 1)),
        ("squash(model(x))", (100, 1)),
        ("model(x).squeeze(1)", (100,)),
        ("model(x).view(-1)", (None,)),
        ("table[:, 14]", (None,)),
        ("table[:, 13:14]", (None, 1)),
        ("torch.tensor([[1.0], [2.0]])", (2, 1)),
        ("torch.tensor([5.0])", (1,)),
        ("torch.cat((x, w), 1)", (100, None)),
        ("torch.cat((x, w), where)", (None, None)),
        ("torch.linspace(-1, 1, n)", (100,)),
        ("torch.arange(20)", (20,)),
        ("torch.arange(0, 1, 0.1)", None),
        ("x[:, 0].unsqueeze(1)", None),
        ("x[:, None, 0]", None),
        ("load()", None),
        ("torch.zeros(shape)", None),
    ],
)
def test_shape_of(expression: str, shape: Dims | None) -> None:
    run = make_run(sources={"train.py": f"{HEAD}\nanswer = {expression}\n"})
    module = project_of(run).modules[0]
    value = next(
        node.value for node in module.nodes(ast.Assign) if ast.unparse(node.targets[0]) == "answer"
    )
    assert Ranks(project_of(run), module, module.tree).of(value) == shape
