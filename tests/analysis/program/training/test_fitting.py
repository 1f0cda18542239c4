"""What is learnt from data that are held out."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.fitting import leaky_fits
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
{before}
X_train, X_test, y_train, y_test = train_test_split(X, y)
{after}
"""


@pytest.mark.parametrize(
    ("before", "after", "claim"),
    [
        ("X = scaler.fit_transform(X)", "", "is fitted on"),
        ("X = (X - X.mean(axis=0)) / X.std(axis=0)", "", "is scaled by statistics of all data"),
        ("", "X_train = scaler.fit_transform(X_train)", ""),
        (
            "",
            "a, b = scaler.fit_transform(X_train), scaler.fit_transform(X_test)",
            "is fitted again",
        ),
    ],
)
def test_leaky_fits(before: str, after: str, claim: str) -> None:
    story = program_of(script(TEXT, before=before, after=after)).stories[0]
    claims = [leak.claim for leak in leaky_fits(story)]
    assert bool(claims) == bool(claim)
    assert all(claim in text for text in claims)
