"""Attention leaves each row a key."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.empty_rows import empty_rows
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
lengths = torch.randint({low}, 9, (64, 1))
mask = torch.arange(8) >= lengths
weights = scores.masked_fill(mask, {fill}).softmax(-1)
{after}
"""


@pytest.mark.parametrize(
    ("low", "fill", "after", "count"),
    [
        ("0", 'float("-inf")', "", 1),
        ("1", 'float("-inf")', "", 0),
        ("0", "-1e9", "", 0),
        ("0", "-torch.inf", "weights = weights.nan_to_num(0)", 0),
    ],
)
def test_rows_without_a_key(low: str, fill: str, after: str, count: int) -> None:
    (story,) = program_of(script(PROGRAM, low=low, fill=fill, after=after)).stories
    found = list(empty_rows(story))
    assert len(found) == count
    assert all(row.origin.site is not None for row in found)
