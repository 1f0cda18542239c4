"""Held-out loaders give other examples than training loaders."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.repeated_data import repeated_data
from traindx.examples import script

PROGRAM = """
from torch.utils.data import DataLoader
from torchvision import datasets
data = datasets.MNIST("data", train=True)
train_loader = DataLoader(data, shuffle=True)
val_loader = {held}
"""


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ("train_loader", ["the same loader as train_loader"]),
        ("DataLoader(data)", ["it reads the same data as train_loader"]),
        ("DataLoader(data, sampler=others)", []),
        ('DataLoader(datasets.MNIST("data", train=False))', []),
        ('DataLoader(datasets.USPS("data", train=True))', []),
    ],
)
def test_the_same_examples(held: str, says: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, held=held)).stories
    assert [found.says for found in repeated_data(story)] == says
