"""Updates that lose gradients or rates: late steps, unreached passes, partial clearing."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.cleared_gradients import late_steps
from traindx.analysis.program.training.hand_schedules import falling_rates
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.unreached_backwards import unreached_backwards
from traindx.analysis.program.training.updates import (
    ignored_accumulation,
    is_discarded,
    is_once,
    updates_on_old_gradients,
)
from traindx.examples import make_run

PROGRAM = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(9):
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data)):
        {first}
        loss = nn.functional.cross_entropy(net(x), y)
        {then}
    {last}
"""


def story_of(first: str = "pass", then: str = "pass", last: str = "pass") -> Story:
    text = PROGRAM.format(first=first, then=then, last=last)
    return program_of(make_run(sources={"train.py": text})).stories[0]


@pytest.mark.parametrize(
    ("first", "then", "is_late"),
    [
        ("opt.zero_grad()", "loss.backward()", True),
        ("net.zero_grad()", "loss.backward()", True),
        ("pass", "loss.backward()", False),
        ("opt.zero_grad()", "loss.backward(); opt.step()", False),
    ],
)
def test_late_steps(first: str, then: str, is_late: bool) -> None:
    assert bool(list(late_steps(story_of(first, then, "opt.step()")))) is is_late


@pytest.mark.parametrize(
    ("then", "is_unreached"),
    [
        ("if 'fit' == 'train': loss.backward(); opt.step()", True),
        ("if mode == 'train': loss.backward(); opt.step()", False),
        ("loss.backward(); opt.step()", False),
        ("print(loss)", False),
    ],
)
def test_unreached_backwards(then: str, is_unreached: bool) -> None:
    assert bool(list(unreached_backwards(story_of(then=then)))) is is_unreached


@pytest.mark.parametrize(
    ("first", "is_old"),
    [
        ("opt.zero_grad()", False),
        ("net[0].zero_grad()", True),
        ("net[0].zero_grad(); net[2].zero_grad()", False),
        ("if i == 0: opt.zero_grad()", True),
        ("if i % 4 == 0: opt.zero_grad()", False),
    ],
)
def test_old_gradients(first: str, is_old: bool) -> None:
    story = story_of(first, "loss.backward(); opt.step()")
    assert bool(list(updates_on_old_gradients(story))) is is_old


def test_once() -> None:
    (zero, *_) = story_of("if i == 0: opt.zero_grad()").does(Do.ZERO_GRAD)
    assert is_once(zero.event)


@pytest.mark.parametrize(
    ("then", "is_dropped"),
    [("loss.backward(); net.zero_grad()", True), ("loss.backward(); opt.step()", False)],
)
def test_discarded_gradients(then: str, is_dropped: bool) -> None:
    story = story_of(then=then)
    assert is_discarded(story, story.does(Do.BACKWARD)[0]) is is_dropped


@pytest.mark.parametrize(
    ("factor", "is_gone"), [("*= 0.5", True), ("/= 2", True), ("*= 0.9999", False), ("= 1", False)]
)
def test_falling_rates(factor: str, is_gone: bool) -> None:
    then = f"loss.backward(); opt.step(); opt.param_groups[0]['lr'] {factor}"
    assert bool(list(falling_rates(story_of(then=then)))) is is_gone


@pytest.mark.parametrize(
    ("prepared", "is_ignored"), [("net, opt", False), ("net", True), ("*things", False)]
)
def test_ignored_accumulation(prepared: str, is_ignored: bool) -> None:
    text = f"""
import torch
from accelerate import Accelerator

engine = Accelerator(gradient_accumulation_steps=4)
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
engine.prepare({prepared})
for x, y in loader:
    with engine.accumulate(net):
        engine.backward(torch.nn.functional.cross_entropy(net(x), y))
        opt.step()
        opt.zero_grad()
"""
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert bool(list(ignored_accumulation(story))) is is_ignored
