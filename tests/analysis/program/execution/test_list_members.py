"""What is left in a list from which members are taken."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Items, constant
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("body", "left", "is_whole"),
    [
        ("last = found.pop()", [1, 2], True),
        ("found.pop()\nfound.pop()", [1], True),
        ("found.pop(0)", [2, 3], True),
        ("found.pop(-2)\nfound.append(9)", [1, 3, 9], True),
        ("for i in (0, 1): found.pop()", [1], True),
        ("for x in loader: found.pop()", [1, 2, 3], False),
        ("found.pop(place)", [1, 2, 3], True),
        ("queue = collections.deque(found)\nqueue.popleft()\nfound = list(queue)", [2, 3], True),
    ],
)
def test_members_that_are_taken_out(body: str, left: list[int], is_whole: bool) -> None:
    text = f"import collections\nfound = [1, 2, 3]\n{body}\nprint(found)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    found = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert isinstance(found, Items)
    assert [constant(v) for v in found.members] == left
    assert found.is_whole is is_whole


def test_members_of_a_path() -> None:
    text = "found = [1, 2]\nif flag:\n    found.pop()\nprint(found)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    found = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert isinstance(found, Items)
    assert [constant(v) for v in found.members] == [1, 2]
