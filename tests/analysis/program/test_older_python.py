"""Files that were written for an older Python are read all the same."""

from __future__ import annotations

import ast

import pytest

from traindx.analysis.program.syntax import Module

OLD = """
import torch

def train(model, loader):
    for x, y in loader:
        x = x.cuda(async=True)
        try:
            loss = model(x)
        except ValueError, error:
            print 'failed', error
        print "loss %.3f" % (loss.item())
"""


def test_old_syntax_is_read() -> None:
    module = Module("train.py", OLD)
    assert module.is_python
    called = [ast.unparse(call.func) for call, _ in module.calls()]
    assert "x.cuda" in called and called.count("print") == 2


def test_lines_and_columns_stay() -> None:
    module = Module("train.py", OLD)
    assert module.is_python
    move = next(call for call, name in module.calls() if name == "x.cuda")
    assert module.source(move) == "x.cuda(async=True)"
    assert move.lineno == 6


@pytest.mark.parametrize("text", ["def broken(:\n    pass", "x = = 1", "print 'a"])
def test_what_is_no_python_is_not_read(text: str) -> None:
    assert not Module("train.py", text).is_python
