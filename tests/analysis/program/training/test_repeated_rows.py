"""Rows that are added again in every turn, and rows that share one memory."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.repeated_rows import repeated_rows
from traindx.analysis.program.training.shared_buffers import shared_buffers
from traindx.examples import script

ROWS = """
from torch.utils.data import DataLoader
table, rows = [], []
for path in paths:
    {first}
    for line in open(path):
        rows.append((len(line), line.count("a")))
    {then}
train_loader = DataLoader({read}, batch_size=8)
for batch in train_loader:
    print(batch)
"""


@pytest.mark.parametrize(
    ("first", "then", "read", "count"),
    [
        ("pass", "table.extend(rows)", "table", 1),
        ("pass", "table += rows", "[(a, b) for a, b in table]", 1),
        ("rows = []", "table.extend(rows)", "table", 0),
        ("del rows[:]", "table.extend(rows)", "table", 0),
        ("pass", "pass", "rows", 0),
        ("pass", "table.extend(rows)", "others", 0),
    ],
)
def test_rows_that_are_added_again(first: str, then: str, read: str, count: int) -> None:
    (story,) = program_of(script(ROWS, first=first, then=then, read=read)).stories
    assert len([*repeated_rows(story)]) == count


BUFFER = """
import numpy as np
import torch
buffer = np.zeros((9, 4))
rows = []
for k, piece in enumerate(pieces):
    {fill}
    rows.append({row})
print(torch.stack(rows))
"""


@pytest.mark.parametrize(
    ("fill", "row", "count"),
    [
        ("buffer[:] = piece", "torch.from_numpy(buffer)", 1),
        ("buffer[:len(piece), :] = piece", "torch.as_tensor(buffer).view(-1)", 1),
        ("buffer[:] = piece", "torch.tensor(buffer)", 0),
        ("buffer[k] = piece", "torch.from_numpy(buffer[k])", 0),
        ("buffer = np.array(piece)", "torch.from_numpy(buffer)", 0),
        ("buffer[:] = 0", "torch.from_numpy(buffer)", 0),
    ],
)
def test_rows_that_share_one_memory(fill: str, row: str, count: int) -> None:
    (story,) = program_of(script(BUFFER, fill=fill, row=row)).stories
    assert len([*shared_buffers(story)]) == count
