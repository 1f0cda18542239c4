"""Losses written by hand for probabilities, and what the numbers of a tensor are."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.contents import Content, contents
from traindx.analysis.program.training.overlap_scores import raw_overlaps
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.raw_logarithms import raw_logarithms
from traindx.examples import script

TEXT = """
import torch
from torch import nn
net = nn.Linear(4, 3)
for x, y in loader:
    s = net(x)
    p = {p}
    loss = {loss}
    loss.sum().backward()
"""
DICE = "1 - 2 * (p * y).sum() / (p.sum() + y.sum() + 1)"
FOCAL = "-(y * torch.log(p + 1e-7) + (1 - y) * torch.log(1 - p + 1e-7))"


@pytest.mark.parametrize(
    ("p", "loss", "is_raw"),
    [
        ("s", DICE, True),
        ("s", "(p * y).sum() / (p.sum() + y.sum() - (p * y).sum())", True),
        ("s.sigmoid()", DICE, False),
        ("s", "(p * y).sum() / y.sum()", False),
        ("s", "(p * y).sum() / (p.norm() * y.norm())", False),
        ("(s > 0).float()", DICE, False),
    ],
)
def test_overlaps(p: str, loss: str, is_raw: bool) -> None:
    assert any(raw_overlaps(program_of(script(TEXT, p=p, loss=loss)).stories[0])) == is_raw


@pytest.mark.parametrize(
    ("p", "loss", "is_raw"),
    [
        ("s", FOCAL, True),
        ("s.clamp(1e-6, 1 - 1e-6)", FOCAL, True),
        ("torch.sigmoid(s)", FOCAL, False),
        ("s", "torch.log(p + 1e-7)", False),
    ],
)
def test_logarithms(p: str, loss: str, is_raw: bool) -> None:
    assert any(raw_logarithms(program_of(script(TEXT, p=p, loss=loss)).stories[0])) == is_raw


@pytest.mark.parametrize(
    ("p", "content"),
    [
        ("s.sigmoid().mean(1)", Content.POOLED),
        ("(s.softmax(-1) * net(x).sigmoid()).sum(-1)", Content.POOLED),
        ("1 - (1 - s.sigmoid()).prod(1)", Content.POOLED),
        ("1 - s.sigmoid()", Content.POOLED),
        ("s.sigmoid() * s.softmax(1)", Content.POOLED),
        ("s.sigmoid().clamp(1e-6, 1 - 1e-6)", Content.POOLED),
        ("(s.softmax(0) * net(x).sigmoid()).sum(1)", Content.UNKNOWN),
        ("(s.softmax(-1) * net(x)).sum(-1)", Content.UNKNOWN),
        ("s.sigmoid() * s", Content.UNKNOWN),
    ],
)
def test_numbers_between_zero_and_one(p: str, content: Content) -> None:
    text = TEXT.replace("loss = {loss}", "loss = p.abs()")
    (story,) = program_of(script(text, p=p)).stories
    event = next(e for e in story.events if e.name == ".abs")
    assert event.receiver is not None
    assert {c for c, _ in contents(event.receiver)} == {content}
