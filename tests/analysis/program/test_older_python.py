"""Files that were written for an older Python are read all the same."""

from __future__ import annotations

import ast

import pytest

from traindx.analysis.program.syntax import parse
from traindx.model.run import Source

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
    module = parse(Source("train.py", OLD))
    assert module is not None
    called = [ast.unparse(call.func) for call, _ in module.calls()]
    assert "x.cuda" in called and called.count("print") == 2


def test_lines_and_columns_stay() -> None:
    module = parse(Source("train.py", OLD))
    assert module is not None
    move = next(call for call, name in module.calls() if name == "x.cuda")
    assert module.source(move) == "x.cuda(async=True)"
    assert move.lineno == 6


@pytest.mark.parametrize("text", ["def broken(:\n    pass", "x = = 1", "print 'a"])
def test_what_is_no_python_is_not_read(text: str) -> None:
    assert parse(Source("train.py", text)) is None
