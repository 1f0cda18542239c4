"""Ids, codes and scales that held-out data have from themselves."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.own_lookups import own_lookups
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
from collections import Counter
import numpy as np
import torch
from sklearn.preprocessing import LabelEncoder
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def ids_of(rows):
    return {ids}
def codes(rows, ids):
    return torch.tensor([[ids[w] for w in row] for row in rows])
first = [line.split() for line in open("train.txt")]
second = [line.split() for line in open("val.txt")]
train = DataLoader(TensorDataset({train}, labels), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset({val}, others), batch_size=8)
model = nn.EmbeddingBag(500, 2)
optimizer = torch.optim.Adam(model.parameters())
for x, y in train:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
with torch.no_grad():
    for x, y in val:
        print((model(x).argmax(1) == y).sum())
"""
COUNTED = "{w: i for i, (w, n) in enumerate(Counter(w for r in rows for w in r).most_common(), 2)}"
SORTED = "{w: i for i, w in enumerate(sorted({w for r in rows for w in r}))}"
GIVEN = "{w: i for i, w in enumerate(open('vocabulary.txt'))}"
TRAIN, VAL = "codes(first, ids_of(first))", "codes(second, ids_of(second))"


@pytest.mark.parametrize(
    ("ids", "train", "val", "count"),
    [
        (COUNTED, TRAIN, VAL, 1),
        (SORTED, TRAIN, VAL, 1),
        (SORTED, TRAIN, "codes(second, ids_of(first))", 0),
        (SORTED, "codes(first, ids_of(first + second))", "codes(second, ids_of(first + second))", 0),
        (GIVEN, TRAIN, VAL, 0),
        ("0", "torch.tensor(LabelEncoder().fit_transform(a))",
         "torch.tensor(LabelEncoder().fit_transform(b))", 1),
    ],
)  # fmt: skip
def test_own_lookups(ids: str, train: str, val: str, count: int) -> None:
    (story, *_) = program_of(script(PROGRAM, ids=ids, train=train, val=val)).stories
    assert len([*own_lookups(story)]) == count
