"""What can be gone over once, and which loops come back to it."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.iterators import used_up
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
def rows(n):
    for i in range(n):
        yield read(i)

{made}
for epoch in range(9):
    for row in {over}:
        use(row){more}
"""


@pytest.mark.parametrize(
    ("made", "over", "more", "expected"),
    [
        ("source = rows(5)", "source", "", 1),
        ("source = rows(5)", "enumerate(source)", "", 1),
        ("source = iter(loader)", "source", "", 1),
        ("source = map(read, names)", "source", "", 1),
        ("source = (read(n) for n in names)", "source", "", 1),
        ("source = [read(n) for n in names]", "source", "", 0),
        ("source = list(rows(5))", "source", "", 0),
        ("pass", "rows(5)", "", 0),
        ("pass", "iter(loader)", "", 0),
        ("source = iter(loader)", "source", "\n        break", 0),
    ],
)
def test_used_up(made: str, over: str, more: str, expected: int) -> None:
    text = PROGRAM.format(made=made, over=over, more=more)
    [story] = program_of(make_run(sources={"train.py": text})).stories
    assert len(used_up(story)) == expected
