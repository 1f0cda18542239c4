"""Held-out data pass through no random transform."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.random_data import random_held_out_data
from traindx.examples import script

PROGRAM = """
from torchvision import datasets, transforms
{name} = transforms.Compose([transforms.{first}(32), transforms.ToTensor()])
{dataset} = datasets.CIFAR10("data", transform={name})
"""


@pytest.mark.parametrize(
    ("name", "first", "dataset", "found"),
    [
        ("chain", "RandomCrop", "val_set", ["`val_set` passes through RandomCrop"]),
        ("val_chain", "RandomCrop", "data", ["`val_chain` holds RandomCrop"]),
        ("chain", "CenterCrop", "val_set", []),
        ("chain", "RandomCrop", "train_set", []),
        ("tta", "RandomCrop", "tta_test_set", []),
    ],
)
def test_random_changes(name: str, first: str, dataset: str, found: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, name=name, first=first, dataset=dataset)).stories
    assert [f"{r.says} {r.name}" for r in random_held_out_data(story)] == found
