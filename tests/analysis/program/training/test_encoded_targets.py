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
