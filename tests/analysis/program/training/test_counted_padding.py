"""A loss leaves out the padding of its targets."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.counted_padding import counted_padding
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

def collate(batch):
    return pad_sequence([x for x, _ in batch]), pad_sequence([y for _, y in batch]{pad})

for x, y in {loader}:
    optimizer.zero_grad()
    F.cross_entropy(model(x).flatten(0, 1), {target}{ignored}).backward()
    optimizer.step()
"""
SEEN = "DataLoader(pairs, collate_fn=collate)"


@pytest.mark.parametrize(
    ("parts", "certain"),
    [
        ({}, [True]),
        ({"pad": ", padding_value=7", "ignored": ", ignore_index=0"}, [True]),
        ({"ignored": ", ignore_index=0"}, []),
        ({"pad": ", padding_value=-100"}, []),
        ({"target": "y[y > 0]"}, []),
        ({"loader": "batches"}, []),
    ],
)
def test_padding_in_the_loss(parts: dict[str, str], certain: list[bool]) -> None:
    usual = {"pad": "", "loader": SEEN, "target": "y.flatten()", "ignored": ""}
    found = counted_padding(program_of(script(PROGRAM, **{**usual, **parts})))
    assert [padding.is_certain for padding in found] == certain
