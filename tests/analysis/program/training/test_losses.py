"""Where a loss is computed, and what becomes of it."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.losses import is_changed, is_mean, is_passed_on, losses
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import torch
import torch.nn.functional as F
from torch import nn
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
out = model(x)
"""


def story_of(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        ("criterion(out, y)", 1),
        ("F.mse_loss(out, y)", 1),
        ("((out - y) ** 2).mean()", 1),
        ("y.mean()", 0),
        ("out.argmax(1)", 0),
    ],
)
def test_losses(loss: str, count: int) -> None:
    story = story_of(f"loss = {loss}\n")
    assert len(list(losses(story, story.events))) == count


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(out, y)",
        "F.cross_entropy(out, target=y)",
        "F.cross_entropy(target=y, input=out)",
        "criterion(out, y)",
        "criterion(target=y, input=out)",
    ],
)
def test_operands_are_the_same_by_position_and_by_name(loss: str) -> None:
    story = story_of(f"y = x\nloss = {loss}\n")
    operation = next(o for e in story.events if (o := operation_of(e.result))
                     and o.name == "cross_entropy")  # fmt: skip
    assert ["out" in operation.operands[0].names, "y" in operation.operands[1].names] == [True] * 2


@pytest.mark.parametrize(
    ("line", "is_passed"),
    [
        ("engine.run(loss)", True),
        ("engine.run(objective=2 * loss)", True),
        ("engine.run(loss.item())", False),
        ("print(loss)", False),
    ],
)
def test_a_loss_that_something_out_of_sight_gets(line: str, is_passed: bool) -> None:
    story = story_of(f"loss = criterion(out, y)\n{line}\n")
    found = [e.result for e in losses(story, story.events) if e.result is not None]
    assert is_passed_on(story, story.events, found) is is_passed


@pytest.mark.parametrize(
    ("loss", "is_averaged"),
    [
        ("criterion(out, y)", True),
        ("criterion(out, y) + F.mse_loss(out, y)", True),
        ("criterion(out, y) / 4", False),
        ("F.mse_loss(out, y, reduction='sum')", False),
        ("F.mse_loss(out, y, reduction=how)", False),
    ],
)
def test_a_mean_over_the_batch(loss: str, is_averaged: bool) -> None:
    story = story_of(f"loss = {loss}\nloss.backward()\n")
    assert is_mean(story.does(Do.BACKWARD)[0].subject) is is_averaged


def test_a_loss_changed_in_place() -> None:
    for line, changes in (
        ("loss.div_(4)", True),
        ("loss.register_hook(f)", True),
        ("f(loss)", False),
    ):
        story = story_of(f"loss = criterion(out, y)\n{line}\nloss.backward()\n")
        loss = story.does(Do.BACKWARD)[0].subject
        assert loss is not None
        assert is_changed(loss, story.events) is changes
