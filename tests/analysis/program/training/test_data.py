"""The role of loaders, random numbers and ranks in data, and labels that come class by class."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer
from traindx.analysis.program.training.class_order import sorted_classes
from traindx.analysis.program.training.data import (
    Role,
    depends_on_rank,
    disturbed_input,
    feeds,
    is_random,
    joined_parts,
    split_from,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import os
import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def run(loader, learn):
    with torch.set_grad_enabled(learn):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if learn:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": START + text})).stories[0]


def test_a_loader_is_for_what_its_loop_does() -> None:
    story = _story("a, b = DataLoader(one), DataLoader(two)\nrun(a, True)\nrun(b, False)\n")
    first, second = feeds(story)
    assert (first.role, second.role) == (Role.TRAIN, Role.HELD_OUT)
    assert first.trains
    assert not second.trains


def test_names_are_the_last_hint() -> None:
    story = _story("train_dl = DataLoader(a)\nval_dl = DataLoader(b)\nc = DataLoader(c)\n")
    assert [f.role for f in feeds(story)] == [Role.TRAIN, Role.HELD_OUT, Role.UNKNOWN]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("", Answer.NO),
        (", shuffle=True", Answer.YES),
        (", 8, True", Answer.YES),
        (", shuffle=sampler is None", Answer.UNKNOWN),
        (", **options", Answer.UNKNOWN),
    ],
)
def test_whether_a_loader_shuffles(options: str, answer: Answer) -> None:
    (feed,) = feeds(_story(f"loader = DataLoader(data{options})\n"))
    assert feed.shuffles is answer


def test_what_a_dataset_is_joined_and_split_from() -> None:
    story = _story(
        "whole = make()\na, b = random_split(whole, [8, 2])\n"
        "first = DataLoader(ConcatDataset([a, b]))\nsecond = DataLoader(b)\n"
    )
    first, second = feeds(story)
    assert first.dataset is not None
    assert second.dataset is not None
    parts = list(joined_parts(first.dataset))
    assert any(part is second.dataset for part in parts)
    assert split_from(second.dataset) is not None
    assert split_from(parts[0]) is split_from(parts[1])


@pytest.mark.parametrize(
    "made", ["torch.randn(3)", "np.random.rand(3)", "np.random.default_rng(0).normal(size=3)"]
)
def test_random_numbers(made: str) -> None:
    (feed,) = feeds(_story(f"loader = DataLoader(TensorDataset({made}, y))\n"))
    assert feed.dataset is not None
    assert is_random(feed.dataset)


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ("rows[torch.distributed.get_rank()::2]", True),
        ('rows[int(os.environ["RANK"]):]', True),
        ("rows[rank::world_size]", True),
        ("rows[3:]", False),
    ],
)
def test_a_rank_in_the_data(data: str, answer: bool) -> None:
    (feed,) = feeds(_story(f"loader = DataLoader({data})\n"))
    assert depends_on_rank(feed.dataset) is answer


SET = """
class Rows(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __getitem__(self, i):
        x, y = self.x[i], self.y[i]
        {change}
        return x, {target}

loader = DataLoader(Rows(a, b))
"""


@pytest.mark.parametrize(
    ("change", "target", "answer"),
    [
        ("x = x + torch.randn_like(x)", "y", True),
        ("x = x.flip(-1) if torch.rand(1) < 0.5 else x", "y", True),
        ("pass", "y", False),
        ("x = x + torch.randn_like(x)", "self.x[i]", False),  # noise to be taken away
        ("j = np.random.randint(9); x = x[j:]", "y", False),  # a window
        ("torch.manual_seed(i); x = x + torch.randn_like(x)", "y", False),  # the same every time
    ],
)
def test_an_input_that_is_disturbed(change: str, target: str, answer: bool) -> None:
    (feed,) = feeds(_story(SET.format(change=change, target=target)))
    assert feed.example is not None
    found = disturbed_input(feed.example)
    assert (found is not None) is answer


@pytest.mark.parametrize(
    ("loader", "answer"), [("DataLoader(data)", True), ("DataLoader(data, shuffle=True)", False)]
)
def test_labels_class_by_class(loader: str, answer: bool) -> None:
    story = _story(
        "y = torch.tensor(np.concatenate([np.zeros(5), np.ones(5)]))\n"
        f"data = TensorDataset(x, y)\nrun({loader}, True)\n"
    )
    loss = next(e for e in story.events if e.name.endswith("cross_entropy"))
    assert (sorted_classes(story, loss.args[1]) is not None) is answer
