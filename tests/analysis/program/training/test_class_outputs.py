"""A classifier has as many outputs as its dataset has classes."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.class_outputs import miscounts
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
from torchvision.datasets import MNIST

model = nn.Sequential(nn.Flatten(), nn.Linear(784, {outputs}))
for x, y in torch.utils.data.DataLoader(MNIST("data"{options}), 32):
    nn.functional.cross_entropy(model(x), y).backward()
"""


@pytest.mark.parametrize(
    ("outputs", "options", "found"),
    [
        ("9", "", [(9, 10, "9")]),
        ("10", "", []),
        ("9", ", target_transform=merge", []),
        ("n", "", []),
    ],
)
def test_outputs_for_other_classes(
    outputs: str, options: str, found: list[tuple[int, int, str]]
) -> None:
    run = script(PROGRAM, outputs=outputs, options=options)
    miscounted = list(each_place(run, miscounts, lambda miscount: miscount.layer))
    assert [(m.outputs, m.classes) for m in miscounted] == [f[:2] for f in found]
    assert all(m.written is not None and m.name == "MNIST" for m in miscounted)
