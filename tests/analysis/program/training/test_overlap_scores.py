"""What an overlap is divided by."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.overlap_scores import halved_overlaps
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import torch
for image, mask in loader:
    pred = model(image) > 0
    hit = (pred & mask).sum()
    print({score})
"""


@pytest.mark.parametrize(
    ("score", "is_half"),
    [
        ("hit / (pred.sum() + mask.sum())", True),
        ("hit / (pred.sum() + mask.sum() - hit)", False),
        ("2 * hit / (pred.sum() + mask.sum())", False),
        ("hit / mask.sum()", False),
    ],
)
def test_halved_overlaps(score: str, is_half: bool) -> None:
    assert any(halved_overlaps(program_of(script(TEXT, score=score)).stories[0])) == is_half
