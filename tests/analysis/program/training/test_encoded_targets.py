"""Statistics of the targets by group among the features."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.encoded_targets import encoded_targets
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import numpy as np
import torch
from torch.utils.data import TensorDataset
city, price, area = np.load("city.npy"), np.load("price.npy"), np.load("area.npy")
order = np.random.permutation(len(city))
a, b = order[:800], order[800:]
means = {means}
x = np.stack([area, means], 1)
train = TensorDataset(torch.tensor(x[a]), torch.tensor(price[a]))
val = TensorDataset(torch.tensor(x[b]), torch.tensor(price[b]))
"""


@pytest.mark.parametrize(
    ("means", "is_found"),
    [
        ("(np.bincount(city, weights=price) / np.bincount(city))[city]", True),
        ("np.array([price[city == c].mean() for c in city])", True),
        ("(np.bincount(city[a], weights=price[a]) / 9)[city]", False),
        ("np.array([price[a][city[a] == c].mean() for c in city])", False),
        ("np.bincount(city)[city]", False),
        ("np.array([area[city == c].mean() for c in city])", False),
    ],
)
def test_encoded_targets(means: str, is_found: bool) -> None:
    (story,) = program_of(script(PROGRAM, means=means)).stories
    assert bool([*encoded_targets(story)]) is is_found


FRAME = """
import pandas as pd
import torch
from sklearn.model_selection import KFold, train_test_split
from torch.utils.data import TensorDataset
table = pd.read_csv("houses.csv")
{before}
{split}
{after}
x = torch.tensor(tr[["area", "city_te"]].values)
train = TensorDataset(x, torch.tensor(tr["price"].values))
"""
MAPPED = 'table["city_te"] = table["city"].map({})'
GROUPED = 'table.groupby("city")["price"]'
CUT = "tr, va = table.iloc[:800], table.iloc[800:]"


@pytest.mark.parametrize(
    ("before", "split", "after", "is_found"),
    [
        (MAPPED.format(f"{GROUPED}.mean()"), CUT, "pass", True),
        (MAPPED.format(f'{GROUPED}.agg(["mean", "count"])["mean"]'), CUT, "pass", True),
        (f'table["city_te"] = {GROUPED}.transform("mean")', CUT, "pass", True),
        (MAPPED.format("table.groupby('city').price.mean()"), CUT, "pass", True),
        (
            MAPPED.format(f"{GROUPED}.mean()"),
            "tr, va = train_test_split(table, test_size=0.2)\ntr = tr.reset_index(drop=True)",
            "pass",
            True,
        ),
        (
            MAPPED.format(f"{GROUPED}.mean()"),
            "for a, b in KFold(5).split(table):\n    tr, va = table.iloc[a], table.iloc[b]",
            "pass",
            True,
        ),
        (
            "pass",
            CUT,
            'tr["city_te"] = tr["city"].map(tr.groupby("city")["price"].mean())',
            False,
        ),
        (MAPPED.format('table.groupby("city")["area"].mean()'), CUT, "pass", False),
        (MAPPED.format('table["city"].value_counts()'), CUT, "pass", False),
        (MAPPED.format(f"{GROUPED}.mean()"), "tr = table", "pass", False),
    ],
)
def test_encoded_columns(before: str, split: str, after: str, is_found: bool) -> None:
    story = program_of(script(FRAME, before=before, split=split, after=after)).stories[0]
    assert bool([*encoded_targets(story)]) is is_found
