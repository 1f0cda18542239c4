"""How far a step moves the weights: rates, groups and clipping."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.settings import is_zero
from traindx.analysis.program.training.step_sizes import (
    clip_bounds,
    groups_of,
    is_adaptive,
    keeps_rate,
    stays_zero,
    tight_clips,
)
from traindx.examples import make_run

START = """
import argparse
import torch
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--none", type=float, default=0.0)
args = parser.parse_args()
net = nn.Linear(4, 2)
"""


def story_of(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("optimizer", "rates"),
    [
        ("SGD(net.parameters(), 0.1)", [0.1]),
        ("SGD(net.parameters(), lr=args.lr)", [0.5]),
        ("Adam(net.parameters())", [1e-3]),
        ("Adam(net.parameters(), lr=rate())", [None]),
        ("Adam([{'params': net.parameters(), 'lr': 2}, {'params': more}], lr=3)", [2, 3]),
        ("Adam(net.parameters(), **options)", []),
    ],
)
def test_rates(optimizer: str, rates: list[float | None]) -> None:
    story = story_of(f"opt = torch.optim.{optimizer}\n")
    assert [g.rate for g in groups_of(story)] == rates


@pytest.mark.parametrize(
    ("after", "keeps", "keeps_zero"),
    [
        ("", True, True),
        ("opt.param_groups[0]['lr'] = 0.1", False, False),
        ("for g in opt.param_groups: g['lr'] = args.none * epoch", False, True),
        ("s = torch.optim.lr_scheduler.StepLR(opt, 5)", False, True),
        ("s = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, 100)", False, False),
        ("opt.load_state_dict(saved)", False, False),
        ("warm_up(opt)", False, False),
    ],
)
def test_what_may_change_a_rate(after: str, keeps: bool, keeps_zero: bool) -> None:
    story = story_of(f"opt = torch.optim.SGD(net.parameters(), lr=0)\n{after}\n")
    optimizer = story.made(Kind.OPTIMIZER)[0]
    assert isinstance(optimizer, Result)
    assert keeps_rate(story, optimizer) is keeps
    assert stays_zero(story, optimizer) is keeps_zero


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", True),
        ("args.none", True),
        ("args.none * unknown", True),
        ("args.none / unknown", True),
        ("args.none + (args.none - 0.0) * unknown", True),
        ("unknown / args.lr", False),
        ("args.none + unknown", False),
        ("args.none if unknown else 0", True),
        ("args.none if unknown else 1", False),
    ],
)
def test_zero(value: str, expected: bool) -> None:
    story = story_of(f"print({value})\n")
    given = next(e for e in story.events if e.name == "builtins.print").args[0]
    assert is_zero(story, given) is expected


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        ("nn.utils.clip_grad_norm_(net.parameters(), 1e-3)", [(1e-3, True)]),
        ("nn.utils.clip_grad_norm_(net.parameters(), max_norm=args.lr)", [(0.5, True)]),
        ("nn.utils.clip_grad_value_(net.parameters(), 2)", [(2.0, False)]),
        ("for p in net.parameters(): p.grad.clamp_(-3, 3)", [(3.0, False)]),
        ("if args.none > 0: nn.utils.clip_grad_norm_(net.parameters(), args.none)", []),
        ("nn.utils.clip_grad_norm_(net.parameters(), bound)", []),
    ],
)
def test_bounds(clip: str, expected: list[tuple[float, bool]]) -> None:
    story = story_of(
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor x, y in loader:\n"
        f"    nn.functional.mse_loss(net(x), y).backward()\n    {clip}\n    opt.step()\n"
    )
    assert {(b.number, b.is_norm) for b in clip_bounds(story)} == set(expected)


def test_bounds_of_frameworks() -> None:
    text = """
from transformers import AutoModel, Trainer, TrainingArguments
model = AutoModel.from_pretrained("gpt2")
args = TrainingArguments("out", max_grad_norm=1e-9, optim="sgd", weight_decay=3.0)
Trainer(model=model, args=args, train_dataset=data).train()
"""
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert {b.number for b in clip_bounds(story)} == {1e-9}
    [group] = groups_of(story)
    assert group.kind == "SGD" and not is_adaptive(group.optimizer)
    assert group.given("weight_decay") is not None


@pytest.mark.parametrize(
    ("bound", "optimizer", "is_tight"),
    [
        ("1e-4", "SGD(net.parameters(), lr=0.01)", True),
        ("1.0", "SGD(net.parameters(), lr=0.01)", False),
        ("1e-3", "Adam(net.parameters())", False),
        ("1e-8", "Adam(net.parameters())", True),
    ],
)
def test_a_bound_that_leaves_no_step(bound: str, optimizer: str, is_tight: bool) -> None:
    text = f"""
opt = torch.optim.{optimizer}
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    nn.utils.clip_grad_norm_(net.parameters(), {bound})
    opt.step()
"""
    assert bool(tight_clips(story_of(text))) is is_tight
