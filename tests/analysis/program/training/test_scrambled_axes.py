"""Reshapes that give a tensor its own sizes in another order."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.scrambled_axes import scrambled_reshapes
from traindx.examples import script

TEXT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
for x, y in DataLoader(TensorDataset(torch.randn(90, 12, 5), torch.zeros(90)), 30):
    batch, time, width = x.shape
    print({made})
"""


@pytest.mark.parametrize(
    ("made", "is_scrambled"),
    [
        ("x.view(batch, width, time)", True),
        ("x.reshape(time, batch, width)", True),
        ("x.view(-1, width, time)", True),
        ("x.transpose(0, 1).reshape(batch, -1)", True),
        ("x.transpose(1, 2).reshape(batch, -1)", False),
        ("x.transpose(0, 1).reshape(time, batch, width)", False),
        ("x.view(batch * time, width)", False),
        ("x.view(batch, 1, time, width)", False),
        ("x.view(batch, 3, 4, width)", False),
        ("torch.randn(4, 6).view(6, 4)", False),
    ],
)
def test_reshapes(made: str, is_scrambled: bool) -> None:
    assert any(scrambled_reshapes(program_of(script(TEXT, made=made)).stories[0])) == is_scrambled


def test_channels_of_images() -> None:
    text = "image = torch.tensor([[[1, 2, 3], [1, 2, 3]]])\nprint(image.reshape(3, 1, 2))\n"
    (found,) = scrambled_reshapes(program_of(script(text)).stories[0])
    assert found.is_of_images
    assert found.shapes == ("(1, 2, 3)", "(3, 1, 2)")
