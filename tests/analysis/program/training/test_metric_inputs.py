"""Means over batches, what metrics are given, and how data are prepared and ordered."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.averages import means_over_examples, of_last_batch
from traindx.analysis.program.training.class_order import class_by_class
from traindx.analysis.program.training.counters import counters, quotients
from traindx.analysis.program.training.data import feeds
from traindx.analysis.program.training.metric_inputs import misread_scores
from traindx.analysis.program.training.preparation import unlike_preparations
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.same_rows import overlap
from traindx.examples import make_run

PROGRAM = """
import numpy as np
import torch
from sklearn.metrics import recall_score, roc_auc_score
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

{data}
net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
for x, y in DataLoader(train, 8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
total = n = 0
with torch.no_grad():
    for x, y in DataLoader(val, 8):
        out = net(x)
        {turn}
        n += len(y)
{end}
"""
DATA = """
train = TensorDataset(torch.tensor({train}), torch.tensor(np.load("yt.npy")))
val = TensorDataset(torch.tensor({val}), torch.tensor(np.load("yv.npy")))
"""
FILES = DATA.format(train='np.load("t.npy")', val='np.load("v.npy")')
RIGHT = "(out.argmax(1) == y).sum().item()"


def _story(turn: str = "pass", end: str = "pass", data: str = FILES) -> Story:
    text = PROGRAM.format(turn=turn, end=end, data=data)
    [story] = program_of(make_run(sources={"t.py": text})).stories
    return story


@pytest.mark.parametrize(
    ("turn", "is_mean", "is_last"),
    [
        ("total += nn.functional.cross_entropy(out, y).item()", True, False),
        ("total += nn.functional.cross_entropy(out, y).item() * len(y)", False, False),
        (f"total += {RIGHT}", False, False),
        (f"total = {RIGHT}", False, True),
    ],
)
def test_means(turn: str, is_mean: bool, is_last: bool) -> None:
    story = _story(turn, "print(total / n)")
    known = counters(story)
    [(event, above, below)] = quotients(story)
    assert (means_over_examples(story, above, below, known) is not None) is is_mean
    assert of_last_batch(story, event, above, below, known) is is_last


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("recall_score(out.argmax(1), y)", 1),
        ("recall_score(y, out.argmax(1))", 0),
        ("roc_auc_score(y, out.argmax(1))", 1),
        ("roc_auc_score(y, out[:, 1])", 0),
        ("total += (out.max(1)[0] == y).sum()", 1),
        ("total += (out.max(1)[1] == y).sum()", 0),
    ],
)
def test_misread_scores(turn: str, expected: int) -> None:
    assert len({found.event.node for found in misread_scores(_story(turn))}) == expected


@pytest.mark.parametrize(
    ("train", "val", "expected"),
    [
        ('np.load("t.npy") / 255', 'np.load("v.npy")', {"* 0.003922"}),
        ('np.load("t.npy") / 255', 'np.load("v.npy") / 255.0', set()),
        ('np.load("t.npy")', 'np.log1p(np.load("v.npy"))', {"log1p"}),
    ],
)
def test_unlike_preparations(train: str, val: str, expected: set[str]) -> None:
    story = _story(data=DATA.format(train=train, val=val))
    assert {found.step for found in unlike_preparations(story)} == expected


@pytest.mark.parametrize(("label", "expected"), [("torch.full((9,), k)", True), ("y(k)", False)])
def test_class_by_class(label: str, expected: bool) -> None:
    parts = f"[TensorDataset(x(k), {label}) for k in range(3)]"
    story = _story(data=f"train = ConcatDataset({parts})\nval = ConcatDataset({parts})")
    dataset = feeds(story)[0].dataset
    assert dataset is not None
    assert (class_by_class(story, dataset) is not None) is expected


@pytest.mark.parametrize(
    ("train", "val", "is_shared"),
    [
        ("rows[:80]", "rows[:20]", True),
        ("rows[:80]", "rows[80:]", False),
        ("rows[torch.randperm(99)[:80]]", "rows[torch.randperm(99)[80:]]", False),
    ],
)
def test_overlap(train: str, val: str, is_shared: bool) -> None:
    data = 'rows, y = torch.load("x.pt"), torch.load("y.pt")\n'
    data += f"train, val = TensorDataset({train}, y), TensorDataset({val}, y)"
    story = _story(data=data)
    one, other = (f.loader for f in feeds(story)[:2])
    assert bool(overlap(story, one, other)) is is_shared
