"""Features that hold what is to be predicted from them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.leaked_targets import leaked_targets
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
table = pd.read_csv("houses.csv")
y = table["price"].values
X = {features}
X_train, X_test, y_train, y_test = train_test_split(X, y)
{after}
"""
APART = 'table.drop(columns="price").values'


@pytest.mark.parametrize(
    ("features", "after", "says"),
    [
        ("table.values", "", "is predicted from all of"),
        ("np.hstack([Z, y.reshape(-1, 1)])", "", "joins the targets with the features"),
        (APART, "X_test[:, 0] = y_test", "after the split"),
        (APART, "", ""),
        ("table.values", "X_train = X_train[:, :-1]", ""),
    ],
)
def test_leaked_targets(features: str, after: str, says: str) -> None:
    story = program_of(script(TEXT, features=features, after=after)).stories[0]
    found = [leak.says for leak in leaked_targets(story)]
    assert len(found) == bool(says) and all(says in text for text in found)
