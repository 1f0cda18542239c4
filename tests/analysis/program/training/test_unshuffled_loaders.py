"""Training data come in an order that is known."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.unshuffled_loaders import (
    labels_by_class,
    unshuffled_loaders,
)
from traindx.examples import script

LOADER = """
from torch.utils.data import DataLoader
from torchvision import datasets
train_loader = DataLoader(datasets.{data}{options})
"""
JOINED = """
import torch
import torch.nn.functional as F
y = torch.cat([torch.zeros(9), torch.ones(9)])
{order}
for i in range(0, 18, 3):
    optimizer.zero_grad()
    F.cross_entropy(model(x[i : i + 3]), y[i : i + 3].long()).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "options", "harmful"),
    [
        ('ImageFolder("train")', "", [True]),
        ('MNIST("data")', ", shuffle=False", [False]),
        ('ImageFolder("train")', ", shuffle=True", []),
        ('ImageFolder("train")', ", sampler=sampler", []),
    ],
)
def test_loaders_in_order(data: str, options: str, harmful: list[bool]) -> None:
    (story,) = program_of(script(LOADER, data=data, options=options)).stories
    assert [found.is_harmful for found in unshuffled_loaders(story)] == harmful


@pytest.mark.parametrize(("order", "count"), [("", 1), ("y = y[torch.randperm(18)]", 0)])
def test_labels_that_are_joined_class_by_class(order: str, count: int) -> None:
    assert len(list(labels_by_class(program_of(script(JOINED, order=order))))) == count
