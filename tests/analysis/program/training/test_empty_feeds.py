"""A loader of held-out data gives batches."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.empty_feeds import empty_feeds
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
from torch.utils.data import DataLoader, random_split
rows = list(read())
{split}
val_loader = DataLoader(val, batch_size=8{more})
with torch.no_grad():
    for x, y in val_loader:
        print(model(x))
"""


@pytest.mark.parametrize(
    ("split", "more", "reasons"),
    [
        ("cut = len(rows)\nval = rows[cut:]", "", ["what it reads is always empty"]),
        ("cut = len(rows) - 9\nval = rows[cut:]", "", []),
        ("_, val = random_split(rows, [95, 5])", "", []),
        (
            "_, val = random_split(rows, [95, 5])",
            ", drop_last=True",
            ["5 examples do not fill one batch, and drop_last leaves it out"],
        ),
    ],
)
def test_loaders_without_a_batch(split: str, more: str, reasons: list[str]) -> None:
    (story,) = program_of(script(PROGRAM, split=split, more=more)).stories
    assert [found.reason for found in empty_feeds(story)] == reasons
