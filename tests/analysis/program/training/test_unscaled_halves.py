"""Gradients of a loss in float16 are scaled."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.unscaled_halves import unscaled_halves
from traindx.examples import script

PROGRAM = """
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.{dtype}):
        loss = criterion(model(x), y)
    {backward}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("dtype", "backward", "is_cast"),
    [
        ("float16", "loss.backward()", {False}),
        ("bfloat16", "loss.backward()", set()),
        ("bfloat16", "(loss.half() * 8).backward()", {True}),
        ("float16", "(loss * 1024).backward()", set()),
    ],
)
def test_losses_without_a_scale(dtype: str, backward: str, is_cast: set[bool]) -> None:
    (story,) = program_of(script(PROGRAM, dtype=dtype, backward=backward)).stories
    assert {found.cast is not None for found in unscaled_halves(story)} == is_cast
