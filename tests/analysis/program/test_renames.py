"""A function and its result get two names, and the program that results runs."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from bench.accuracy.fixing import apply

from traindx.analysis.program import project_of
from traindx.analysis.program.renames import apart
from traindx.analysis.program.syntax import Module
from traindx.examples import make_run

MADE_HERE = """
loss = make()
for x in (1, 2):
    loss = loss(x)
    total.append(loss)
"""
GIVEN = """
def train(criterion):
    for x in (1, 2):
        criterion = criterion(x)
        total.append(criterion)

criterion = make()
train(criterion)
"""
NAME_IN_USE = """
def train(criterion):
    loss = 0
    for x in (1, 2):
        criterion = criterion(x)
        total.append(criterion + loss)

train(make())
"""
OTHER_CALLS = """
loss = make()
for x in (1, 2):
    loss = loss(x)
    total.append(loss)
def other():
    return loss(3)
"""


def patched(text: str) -> str | None:
    """Return a program with its own name taken apart."""
    module = _module(text)
    taken = next(
        n
        for n in module.nodes(ast.Assign)
        if isinstance(n.value, ast.Call) and ast.unparse(n.targets[0]) == ast.unparse(n.value.func)
    )
    patch = apart(module, taken)
    return apply(patch, {"train.py": text})["train.py"] if patch else None


def _module(text: str) -> Module:
    return project_of(make_run(sources={"train.py": text})).modules[0]


def run(text: str) -> list[int]:
    names: dict[str, Any] = {"make": lambda: lambda x: 10 * x, "total": []}
    exec(compile(text, "train.py", "exec"), names)
    return list(names["total"])


@pytest.mark.parametrize("text", [MADE_HERE, GIVEN, NAME_IN_USE, OTHER_CALLS])
def test_the_patched_program_runs(text: str) -> None:
    with pytest.raises(TypeError, match="not callable"):
        run(text)
    mended = patched(text)
    assert mended is not None
    assert run(mended) == [10, 20]


def test_no_patch_where_the_name_is_read_before() -> None:
    text = "def train(loss):\n    print(loss)\n    for x in xs:\n        loss = loss(x)\n"
    assert patched(text) is None


def test_no_patch_for_attributes() -> None:
    assert patched("for x in xs:\n    self.loss = self.loss(x)\n") is None
