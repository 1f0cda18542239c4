"""A held-out loader lies idle while the model is scored on its training data."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.idle_loaders import misplaced_scores, trainers_on_one_set
from traindx.analysis.program.training.program import each_place
from traindx.examples import script

PROGRAM = """
import torch
from torch.utils.data import DataLoader

train_loader, val_loader = DataLoader(rows, 32), DataLoader(others, 32)
model = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def score(loader):
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum() for x, y in loader)

for x, y in train_loader:
    opt.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
print(score({loader}))
"""
TRAINER = """
from transformers import Trainer

Trainer(model, args, train_dataset=rows, eval_dataset={held}).train()
"""


@pytest.mark.parametrize(("loader", "held"), [("train_loader", ["val_loader"]), ("val_loader", [])])
def test_a_score_on_training_data(loader: str, held: list[str]) -> None:
    found = list(each_place(script(PROGRAM, loader=loader), misplaced_scores, lambda s: s.held))
    assert [score.held_name for score in found] == held
    assert all(score.name == "train_loader" and score.call is not None for score in found)


@pytest.mark.parametrize(("held", "count"), [("rows", 1), ("others", 0)])
def test_a_trainer_that_evaluates_on_what_it_trains_on(held: str, count: int) -> None:
    run = script(TRAINER, held=held)
    assert len(list(each_place(run, trainers_on_one_set, lambda event: event.node))) == count
