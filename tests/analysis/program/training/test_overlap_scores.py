"""What an overlap is divided by."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.overlap_scores import halved_overlaps, lopsided_unions
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


MATRIX = """
import torch
matrix = torch.zeros(4, 4)
for image, mask in loader:
    matrix += count(model(image).argmax(1), mask)
hit = matrix.diag()
rows, columns = matrix.sum(1), matrix.sum(0)
print({score})
"""


@pytest.mark.parametrize(
    ("score", "is_lopsided"),
    [
        ("hit / (matrix.sum(1) + matrix.sum(1) - hit)", True),
        ("hit / (matrix.sum(dim=0) + matrix.sum(dim=0) - hit + 1e-6)", True),
        ("2 * hit / (matrix.sum(0) + matrix.sum(0))", True),
        ("hit / (rows + columns - hit)", False),
        ("2 * hit / (rows + columns)", False),
        ("hit / (rows + other.sum(1) - hit)", False),
        ("hit / (matrix.sum() + matrix.sum())", False),
    ],
)
def test_unions_of_a_matrix(score: str, is_lopsided: bool) -> None:
    (story,) = program_of(script(MATRIX, score=score)).stories
    assert bool(list(lopsided_unions(story))) is is_lopsided
