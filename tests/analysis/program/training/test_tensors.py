"""Tensors that are moved, and whose move nothing takes."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.tensors import dropped_moves
from traindx.examples import script


@pytest.mark.parametrize(
    ("move", "is_dropped"),
    [("x.to('cuda')", True), ("x = x.to('cuda')", False), ("model.to('cuda')", False)],
)
def test_dropped_moves(move: str, is_dropped: bool) -> None:
    text = f"import torch\nmodel, x = torch.nn.Linear(4, 2), torch.zeros(3)\n{move}\n"
    assert any(dropped_moves(program_of(script(text)).stories[0])) == is_dropped
