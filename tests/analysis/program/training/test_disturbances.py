"""Labels and inputs keep together: in their order, and over the ranks and parts of the data."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.claims import node_of
from traindx.analysis.program.training.loaders import training_subsets
from traindx.analysis.program.training.program import each_place, program_of
from traindx.analysis.program.training.rank_shares import whole_feed
from traindx.analysis.program.training.row_order import disturbances
from traindx.analysis.program.training.splits import repeated_before, shared_data
from traindx.examples import script

LOOP = """
import torch

model = torch.nn.Linear(8, 3)
for x, y in loader:
    {step}
    torch.nn.functional.cross_entropy(model(x), y).backward()
"""
RANKS = """
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

model = DistributedDataParallel(Net())
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(rows, 32, {order}):
    opt.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
"""
PARTS = """
import numpy as np
from sklearn.model_selection import train_test_split
from torch.utils.data import ConcatDataset, DataLoader, Subset, random_split

{before}
X_train, X_test = train_test_split(X)
train_set, test_set = random_split(rows, [0.9, 0.1])
train_loader, test_loader = DataLoader({read}, 32), DataLoader(test_set, 32)
"""


@pytest.mark.parametrize(
    ("step", "how"),
    [
        ("y = y[torch.randperm(len(y))]", ["put in another order"]),
        ("y = y.roll(1, 0)", ["moved along the examples"]),
        ("o = torch.randperm(len(y)); x, y = x[o], y[o]", []),
    ],
)
def test_labels_that_are_moved_alone(step: str, how: list[str]) -> None:
    found = each_place(script(LOOP, step=step), disturbances, lambda found: node_of(found.value))
    assert [disturbance.how for disturbance in found] == how


@pytest.mark.parametrize(
    ("order", "count"), [("shuffle=True", 1), ("sampler=DistributedSampler(rows)", 0)]
)
def test_ranks_that_all_read_everything(order: str, count: int) -> None:
    stories = program_of(script(RANKS, order=order)).stories
    assert len([s for s in stories if whole_feed(s) is not None]) == count


@pytest.mark.parametrize(
    ("read", "count"), [("ConcatDataset([train_set, test_set])", 1), ("train_set", 0)]
)
def test_held_out_data_in_the_training_loader(read: str, count: int) -> None:
    stories = program_of(script(PARTS, before="", read=read)).stories
    assert len([s for s in stories if shared_data(s) is not None]) == count


@pytest.mark.parametrize(("before", "count"), [("X = np.repeat(X, 3, axis=0)", 1), ("pass", 0)])
def test_examples_that_are_repeated_before_a_split(before: str, count: int) -> None:
    stories = program_of(script(PARTS, before=before, read="train_set")).stories
    assert len([s for s in stories if repeated_before(s) is not None]) == count


@pytest.mark.parametrize(
    ("read", "counts"), [("Subset(train_set, range(32))", [32]), ("train_set", [])]
)
def test_a_part_of_the_training_data(read: str, counts: list[int]) -> None:
    run = script(PARTS, before="", read=read)
    assert [
        count for _, count in each_place(run, training_subsets, lambda subset: subset[0])
    ] == counts
