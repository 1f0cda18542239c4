"""What a mask of padding marks."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.facts.mask_polarity import (
    closes_padded_rows,
    lonely_rows,
    marks_tokens,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

HEAD = "import torch\nfrom torch import nn\nx = nn.Embedding(9, 4)(ids)\n"


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("ids != 0", True),
        ("ids == 0", False),
        ("~(ids != 0)", False),
        ("torch.arange(9)[None] < lengths[:, None]", True),
        ("torch.arange(9)[None] >= lengths[:, None]", False),
        ("flags != 0", None),
    ],
)
def test_tokens_or_padding(mask: str, expected: bool | None) -> None:
    story = program_of(make_run(sources={"train.py": f"{HEAD}m = ({mask}).bool()\n"})).stories[0]
    made = story.events[-1].result
    assert made is not None and marks_tokens(story, made) is expected


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("~v[:, None, :] | ~v[:, :, None]", True),
        ("~(v.unsqueeze(1) & v.unsqueeze(2))", True),
        ("~v[:, None, :] | ~w[:, :, None]", False),
        ("~v[:, None, :]", False),
    ],
)
def test_rows_of_padding(mask: str, expected: bool) -> None:
    story = program_of(make_run(sources={"train.py": f"{HEAD}m = {mask}\n"})).stories[0]
    made = story.events[-1].result
    assert made is not None and closes_padded_rows(made) is expected


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("((d < r) & (d > 0)).float()[None] == 0", True),
        ("~((d <= 0.3) & ~torch.eye(9, dtype=torch.bool))", True),
        ("(d < r).float() * (1 - torch.eye(9)) == 0", True),
        ("~(d < r)", False),
        ("~((d < r) | torch.eye(9).bool())", False),
        ("~((d < r) & (e > 0))", False),
    ],
)
def test_rows_without_a_neighbour(mask: str, expected: bool) -> None:
    story = program_of(make_run(sources={"train.py": f"{HEAD}m = {mask}\n"})).stories[0]
    made = story.events[-1].result
    assert made is not None and (lonely_rows(made) is not None) is expected
