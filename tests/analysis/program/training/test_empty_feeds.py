"""A loader of held-out data gives batches."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.empty_feeds import empty_feeds
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
from torch.utils.data import DataLoader, random_split
rows = list(read())
{split}
val_loader = DataLoader(val, batch_size=8{more})
with torch.no_grad():
    for x, y in val_loader:
        print(model(x))
"""


@pytest.mark.parametrize(
    ("split", "more", "reasons"),
    [
        ("cut = len(rows)\nval = rows[cut:]", "", ["what it reads is always empty"]),
        ("cut = len(rows) - 9\nval = rows[cut:]", "", []),
        ("_, val = random_split(rows, [95, 5])", "", []),
        (
            "_, val = random_split(rows, [95, 5])",
            ", drop_last=True",
            ["5 examples do not fill one batch, and drop_last leaves it out"],
        ),
    ],
)
def test_loaders_without_a_batch(split: str, more: str, reasons: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, split=split, more=more)).stories
    assert [found.reason for found in empty_feeds(story)] == reasons


PASSES = """
import numpy as np
import torch
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
order = np.random.permutation(len(X))
{split}
x_val = torch.tensor(X[val], dtype=torch.float32)
model = torch.nn.Linear(4, 3)
model.eval()
with torch.no_grad():
    for i in {turns}:
        print(model(x_val[i * 32:(i + 1) * 32]))
"""


@pytest.mark.parametrize(
    ("split", "turns", "reasons"),
    [
        ("val = order[130:]", "range(len(x_val) // 32)", ["its range has no turn"]),
        ("val = order[130:]", "range(0, len(x_val) - 32, 32)", ["its range has no turn"]),
        ("train, val = order[:150], order[150:]", "range(5)", ["no row is left for it"]),
        ("n_val = int(0.005 * len(X))\nval = order[:n_val]", "range(5)", ["no row is left for it"]),
        ("val = order[130:]", "range(math.ceil(len(x_val) / 32))", []),
        ("val = order[110:]", "range(len(x_val) // 32)", []),
        ("n_val = 0\nval = order[:n_val]", "range(5)", []),
        ("val = order[n:]", "range(len(x_val) // 32)", []),
    ],
)
def test_loops_without_a_turn(split: str, turns: str, reasons: list[str]) -> None:
    (story,) = program_of(script(PASSES, split=split, turns=turns)).stories
    assert [found.reason for found in empty_feeds(story)] == reasons
