"""A triangular mask of attention leaves every position something to see."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.triangles import closed_masks
from traindx.examples import script

PROGRAM = """
import torch

def attend(scores, n):
    mask = {mask}
    return scores.masked_fill(mask, float("-inf")).softmax(-1)
"""
SQUARE = "torch.ones(n, n, dtype=torch.bool)"


@pytest.mark.parametrize(
    ("mask", "triangles"),
    [
        (f"torch.triu({SQUARE})", [True]),
        (f"~torch.tril({SQUARE}, diagonal=-1)", [False]),
        (f"torch.triu({SQUARE}, diagonal=1)", []),
        (f"torch.triu({SQUARE})\n    mask.fill_diagonal_(False)", []),
    ],
)
def test_a_mask_that_hides_all(mask: str, triangles: list[bool]) -> None:
    found = list(closed_masks(program_of(script(PROGRAM, mask=mask))))
    assert [closed.is_triangle for closed in found] == triangles
    assert all("diagonal=1" in (c.patch() or "") for c in found if c.is_triangle)
