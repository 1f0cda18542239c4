"""In which order inputs and labels stand."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.row_order import lone_reorderings, reorderings
from traindx.examples import make_run

START = """
import random
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader
from sklearn.model_selection import train_test_split

x, y = np.load("x.npy"), np.load("y.npy")
table = pd.read_csv("t.csv")
"""


def _followed(text: str) -> tuple[Story, Value, Value]:
    end = "\nseen(given, wanted)\n"
    story = program_of(make_run(sources={"t.py": START + text + end})).stories[0]
    given, wanted = story.events[-1].args
    return story, given, wanted


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("given = wanted = x[3:9]", 0),
        ("given = wanted = x[torch.randperm(9)]", 1),
        ("np.random.shuffle(x); given = wanted = torch.tensor(x)", 1),
        ("given = wanted = np.random.permutation(x)", 1),
        ("given = wanted = torch.tensor(table.sample(frac=1).values)", 1),
        ("given = wanted = table.sample(frac=0.5).values", 0),
        ("order = torch.randperm(9)\ngiven = train_test_split(x[order], y)[0]; wanted = given", 1),
        ("for given in DataLoader(x, 4, shuffle=True): wanted = given", 1),
        ("for given in DataLoader(x, 4): wanted = given", 0),
    ],
)
def test_what_puts_data_in_a_random_order(text: str, count: int) -> None:
    story, given, _ = _followed(text)
    assert len(list(reorderings(story, given))) == count


def test_an_order_that_the_scores_are_made_with_is_shared() -> None:
    text = "wanted = y[torch.randperm(9)]; given = x"
    story, given, wanted = _followed(text)
    assert list(lone_reorderings(story, wanted, [given]))
    assert not list(lone_reorderings(story, wanted, [given], wanted))


@pytest.mark.parametrize(
    ("text", "is_alone"),
    [
        ("p = torch.randperm(9); given, wanted = x[p], y[p]", False),
        ("p = torch.randperm(9); given, wanted = x[p], y", True),
        ("np.random.shuffle(x); np.random.shuffle(y); given, wanted = x, y", True),
        ("np.random.seed(0); np.random.shuffle(x)\nnp.random.seed(0); np.random.shuffle(y)\n"
         "given, wanted = x, y", False),
        # what only counts rows does not share their order
        ("given = x[torch.randperm(9)]; wanted = y[: len(given)]", True),
        ("given = x[torch.randperm(9)]; wanted = given.sum(1)", False),
    ],
)  # fmt: skip
def test_an_order_that_the_other_does_not_share(text: str, is_alone: bool) -> None:
    story, given, wanted = _followed(text)
    assert bool(list(lone_reorderings(story, given, [wanted]))) is is_alone
