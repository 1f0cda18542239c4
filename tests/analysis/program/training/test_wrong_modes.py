"""Models train in training mode and are evaluated in evaluation mode."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.wrong_modes import (
    evaluation_in_train_mode,
    parts_in_eval_mode,
    training_in_eval_mode,
)
from traindx.examples import script

PROGRAM = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    {train}
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {evaluate}
    with torch.no_grad():
        for x, y in val_loader:
            output = model(x)
"""


@pytest.mark.parametrize(
    ("train", "evaluate", "wrong"),
    [
        ("model.train()", "model.eval()", (0, 0)),
        ("pass", "model.eval()", (1, 0)),
        ("model.train()", "pass", (0, 1)),
    ],
)
def test_modes(train: str, evaluate: str, wrong: tuple[int, int]) -> None:
    (story,) = program_of(script(PROGRAM, train=train, evaluate=evaluate)).stories
    training, evaluation = [*training_in_eval_mode(story)], [*evaluation_in_train_mode(story)]
    assert (len(training), len(evaluation)) == wrong
    assert all(found.layers == ["Dropout"] for found in (*training, *evaluation))
    assert all("model.train()" in (found.patch() or "") for found in training)
    assert all("model.eval()" in (found.patch() or "") for found in evaluation)


PART = """
import torch
from torch import nn
body = nn.Sequential(nn.Linear(4, 8), nn.Dropout())
{before}
class Net(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.head = body, nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.body(x))
model = Net(body)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    {top}
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
PROBE = "body.eval()\nwith torch.no_grad():\n    print(body(torch.zeros(1, 4)).shape)"


@pytest.mark.parametrize(
    ("before", "top", "count"),
    [
        (PROBE, "pass", 1),
        (PROBE, "model.train()", 0),
        (PROBE + "\nbody.train()", "pass", 0),
        ("body.eval()", "pass", 0),
        (PROBE + "\nbody.requires_grad_(False)", "pass", 0),
    ],
)
def test_a_part_is_left_in_the_mode_of_an_earlier_pass(before: str, top: str, count: int) -> None:
    (story,) = program_of(script(PART, before=before, top=top)).stories
    assert len([*parts_in_eval_mode(story)]) == count
