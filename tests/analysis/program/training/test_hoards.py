"""Lists that tensors are kept in, and whether anything is taken out of them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.graphs import is_emptied
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
