"""Accuracies over padded labels."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.padded_metrics import padded_metrics
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 9
    def __getitem__(self, i):
        return torch.tensor(tokens[i]), torch.tensor(tags[i] + [{pad}] * (16 - len(tags[i])))
with torch.no_grad():
    for x, y in DataLoader(Rows(), batch_size=8):
        guess = model(x).argmax(-1)
        {measure}
"""


@pytest.mark.parametrize(
    ("pad", "measure", "count"),
    [
        ("-100", "print((guess == y).float().mean())", 1),
        ("-100", "print((guess.view(-1) == y.view(-1)).float().mean())", 1),
        ("-100", "print(((guess == y) & (y > -1)).float().mean())", 0),
        ("-100", "print((guess == y).sum() / (y != -100).sum())", 0),
        ("-100", "print((guess == y).all(1).float().mean())", 0),
        ("4", "print((guess == y).float().mean())", 0),
    ],
)
def test_padded_metrics(pad: str, measure: str, count: int) -> None:
    (story, *_) = program_of(script(PROGRAM, pad=pad, measure=measure)).stories
    assert len({id(found.compared.site) for found in padded_metrics(story)}) >= count
    assert bool([*padded_metrics(story)]) is bool(count)
