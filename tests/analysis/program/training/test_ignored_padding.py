"""Padding that a loss takes for a class."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.ignored_padding import unignored_padding
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import torch
from torch import nn
loss_fn = nn.CrossEntropyLoss({options})
for words, tags in loader:
    loss_fn(model(words), {given}).backward()
"""


@pytest.mark.parametrize(
    ("given", "options", "found"),
    [
        ("tags.masked_fill(mask, -1).view(-1)", "", [(-1, -100)]),
        ("tags.masked_fill(mask, -1)", "ignore_index=-1", []),
        ("tags.masked_fill(mask, -100)", "", []),
        ("tags.masked_fill(mask, 0)", "", []),
    ],
)
def test_unignored_padding(given: str, options: str, found: list[tuple[int, int]]) -> None:
    padded = unignored_padding(program_of(script(TEXT, given=given, options=options)))
    assert list(dict.fromkeys((pad, ignored) for _, _, pad, ignored in padded)) == found
