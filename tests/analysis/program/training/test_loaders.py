"""What loaders read, how large their batches are, and whether two read the same."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.loaders import (
    batch_size,
    dataset_of,
    different_numbers,
    has_sampler,
    is_idle,
    is_switched,
    named_loaders,
    same_data,
    same_selection,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset
from torchvision import datasets

class Rows(Dataset):
    def __init__(self, split="train"):
        self.x = torch.load(split)
    def __getitem__(self, i):
        return self.x[i]

class Drawn(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 4)
    def __getitem__(self, i):
        return self.x[i]
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text})).stories[0]


def _loaders(story: Story) -> dict[str, Value]:
    return list(named_loaders(story))[-1]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Rows()", "Rows()", True),
        ("Rows()", "Rows('test')", False),
        ("Drawn(8)", "Drawn(8)", False),
        ("data", "data", True),
        ("TensorDataset(x, y)", "TensorDataset(x, y)", True),
        ("TensorDataset(x, y)", "TensorDataset(z, y)", False),
        ("Subset(data, a)", "Subset(data, b)", False),
        ("datasets.MNIST('d', train=True)", "datasets.MNIST('d', True, transform=t)", True),
        ("datasets.MNIST('d')", "datasets.MNIST('d', False, transform=t)", False),
        ("datasets.MNIST('d', train=True)", "datasets.MNIST('d', train=True, transform=t)", True),
    ],
)
def test_same_data(one: str, other: str, is_same: bool) -> None:
    found = _loaders(_story(f"a = DataLoader({one})\nb = DataLoader({other})"))
    assert same_data(dataset_of(found["a"]), dataset_of(found["b"])) is is_same


@pytest.mark.parametrize(
    ("given", "size"),
    [("data", 1), ("data, 32", 32), ("data, batch_size=n", None), ("data, batch_sampler=s", None)],
)
def test_batch_size(given: str, size: int | None) -> None:
    story = _story(f"a = DataLoader({given})")
    assert batch_size(story, _loaders(story)["a"]) == size


def test_samplers() -> None:
    found = _loaders(_story("a = DataLoader(d, sampler=s)\nb = DataLoader(d, sampler=None)"))
    assert has_sampler(found["a"]) and not has_sampler(found["b"])


def test_loaders_in_a_dictionary_and_idle_ones() -> None:
    story = _story("both = {'train': DataLoader(d), 'val': DataLoader(e)}\nuse = both['train']\n"
                   "for x in use: print(x)")  # fmt: skip
    found = _loaders(story)
    assert not is_idle(story, found["train"]) and is_idle(story, found["val"])


def test_a_dataset_that_is_switched() -> None:
    text = "d = Rows()\na = DataLoader(d)\nb = DataLoader(d)\n"
    for more, expected in (("d.set_split('val')", True), ("d.transform = t", False)):
        story = _story(text + more)
        found = _loaders(story)
        data = dataset_of(found["a"])
        assert data is not None
        assert is_switched(story, data, list(found.values())) is expected


@pytest.mark.parametrize(
    ("indices", "count"),
    [("range(32)", 32), ("list(range(24)) * 5", 24), ("[1, 2, 2]", 2), ("rows[:9]", None)],
)
def test_different_numbers(indices: str, count: int | None) -> None:
    (event,) = [e for e in _story(f"s = Subset(d, {indices})").events if e.name.endswith("Subset")]
    assert different_numbers(event.args[1]) == count


@pytest.mark.parametrize(
    ("given", "is_same"), [("3", True), ("seed", True), ("seed + 1", True), ("draw()", False)]
)
def test_datasets_that_seed_themselves(given: str, is_same: bool) -> None:
    text = """
import numpy as np
class Seeded(Dataset):
    def __init__(self, seed):
        self.x = np.random.default_rng(seed).normal(size=8)
    def __getitem__(self, i):
        return self.x[i]
"""
    made = f"a = DataLoader(Seeded({given}))\nb = DataLoader(Seeded({given}))"
    found = _loaders(_story(text + made))
    assert same_data(dataset_of(found["a"]), dataset_of(found["b"])) is is_same


@pytest.mark.parametrize(("home", "is_alike"), [("torch.utils.data", True), ("dgl", False)])
def test_a_loader_of_another_library_may_be_told_what_to_read(home: str, is_alike: bool) -> None:
    text = f"from {home} import DataLoader\none, other = DataLoader(g, a), DataLoader(g, b)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    one, other = (a.value for a in story.execution.assignments)
    assert same_selection(one, other) is is_alike
