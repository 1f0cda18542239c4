"""Lists that tensors are kept in, and whether anything is taken out of them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.graphs import is_emptied
from traindx.analysis.program.training.hoards import kept_outputs
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(("line", "known"), [
    ("kept.clear()", True),
    ("del kept[:]", True),
    ("kept[:] = []", True),
    ("kept.pop(0)", True),
    ("kept.append(x)", False),
    ("del other[:]", False),
])  # fmt: skip
def test_what_is_taken_out_of_a_list(line: str, known: bool) -> None:
    text = f"import torch\nkept, other = [], []\nfor x in loader:\n    kept.append(x)\n    {line}\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    kept = next(a.value for a in story.execution.assignments if a.name == "kept")
    assert is_emptied(story, kept) is known


@pytest.mark.parametrize(
    ("keep", "is_kept"), [("kept[i] = net(x)", True), ("kept['last'] = net(x)", False)]
)
def test_outputs_in_a_table(keep: str, is_kept: bool) -> None:
    text = f"""
import torch
from torch import nn
net, kept = nn.Conv2d(3, 8, 3).cuda(), dict()
net.eval()
with torch.no_grad():
    for i, (x, y) in enumerate(val_loader):
        {keep}
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(kept_outputs(story))) is is_kept
