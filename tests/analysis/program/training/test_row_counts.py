"""How many rows data have, through public sets, splits, slices and lists that a loop fills."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.lengths import length_of_data
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

START = """
import argparse
import math
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from torchvision import datasets

bunch = load_breast_cancer()
X, y = load_wine(return_X_y=True)
"""


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        ("bunch.data", 569),
        ("bunch.data[np.random.permutation(len(bunch.target))][len(bunch.target) // 10:]", 513),
        ("train_test_split(X, y, test_size=0.3, stratify=y)[1]", 54),
        ("train_test_split(X, y, test_size=0.3)[2]", 124),
        ("train_test_split(X, y)[3]", 45),
        ("train_test_split(X, y, train_size=100)[1]", 78),
        ("train_test_split(X, y, test_size=share)[1]", None),
        ("StandardScaler().fit(X).transform(X[:50])", 50),
        ("torch.tensor((X[20:] - X[20:].mean(0)) / X.std(0), dtype=torch.float32)", 158),
        ("random_split(range(100), [0.85, 0.15])[1]", 15),
        ("Subset(data, torch.randperm(80)[60:])", 20),
        ("torch.arange(10, 30)[int(0.9 * 20):]", 2),
        ("X[: int(round(0.1 * X.shape[0]))]", 18),
        ("X[: math.ceil(0.1 * len(X))]", 18),
        ("X[y == 1]", None),
        ("X[order_of(X)]", None),
        ("datasets.MNIST('.', train=False)", 10000),
        ("datasets.CIFAR10('.', download=True)", 50000),
        ("[f(i) for i in range(640)]", 640),
        ("[f(i) for i in range(640) if i % 2]", None),
        ("torch.stack([f(r) for r in X])", 178),
        ("list(zip(X, y))", 178),
        ("torch.cat([torch.randn(40, 3), torch.randn(60, 3)])", 100),
        ("make_moons(300)[0]", 300),
        ("X[['a', 'b']].to_numpy()", 178),
        ("np.stack([X[:, 0], X[:, 1]], axis=1)[:90]", 90),
    ],
)
def test_rows(made: str, rows: int | None) -> None:
    story = program_of(make_run(sources={"train.py": f"{START}\nfound = {made}\n"})).stories[0]
    found = [a.value for a in story.execution.assignments if a.name == "found"][-1]
    assert length_of_data(story, found) == rows


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("        self.items.append(f(i))", 120),
        ("        item = f(i)\n            self.items.append((item, i % 2))", 120),
        ("        if i % 3: self.items.append(f(i))", None),
        ("        self.items.append(f(i))\n            if done(i): break", None),
        ("        self.items.append(f(i))\n        self.items.extend(more)", None),
        ("        for k in range(4):\n                self.items.append(f(i))", 480),
    ],
)
def test_lists_that_a_loop_fills(body: str, rows: int | None) -> None:
    text = (
        "class Toy(Dataset):\n"
        "    def __init__(self, n):\n"
        "        self.items = []\n"
        f"        for i in range(n):\n    {body}\n"
        "    def __len__(self):\n        return len(self.items)\n"
        "    def __getitem__(self, i):\n        return self.items[i]\n"
        "found = Toy(120)\nloader = DataLoader(found)\nfor x in loader: print(x)\n"
    )
    story = program_of(make_run(sources={"train.py": f"{START}\n{text}"})).stories[0]
    found = [a.value for a in story.execution.assignments if a.name == "found"][-1]
    assert length_of_data(story, found) == rows
