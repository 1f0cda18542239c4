"""Where the numbers of data lie: draws, arithmetic, columns, statistics, changes in place."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.facts.spreads import Spreads
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import random
import numpy as np
import torch
rng = np.random.default_rng(0)
a, b = rng.normal(500, 20, 9), rng.uniform(0, 12, 9)
x = np.column_stack([a, b])
found = {made}
print(found)
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("a", [(500, 20)]),
        ("100 - 2 * a", [(-900, 40)]),
        ("x", [(500, 20), (6, 3.46)]),
        ("np.stack([a, b]).T", [(500, 20), (6, 3.46)]),
        ("np.c_[a, b]", [(500, 20), (6, 3.46)]),
        ("x[:3]", [(500, 20), (6, 3.46)]),
        ("x[:, 1]", [(6, 3.46)]),
        ("x[:, :-1]", [(500, 20)]),
        ("(x - x.mean(0)) / x.std(0)", [(0, 1), (0, 1)]),
        ("x.mean()", [(253, 0)]),
        ("np.log(a)", [(6.21, 0.04)]),
        ("torch.tensor([[random.gauss(3, 1), 7.0] for _ in rng])", [(3, 1), (7, 0)]),
        ("rng.integers(0, 256, (9, 3)) / 255", [(0.5, 0.29)]),
        ("np.load('x.npy')", None),
        ("x @ x.T", None),
    ],
)
def test_where_numbers_lie(made: str, expected: list[tuple[float, float]] | None) -> None:
    (story,) = program_of(script(PROGRAM, made=made)).stories
    (printed,) = [e for e in story.events if e.name == "builtins.print"]
    columns = Spreads(story).of(printed.args[0])
    if expected is None:
        assert columns is None
    else:
        assert columns is not None
        found = [(c.mean, c.std) for c in columns if c is not None]
        assert [pytest.approx(e, abs=0.02) for e in expected] == found


def test_columns_that_are_changed_in_place_are_forgotten() -> None:
    program = PROGRAM.replace("found", "first = x[:, :1]\nfirst -= 500\nfound", 1)
    (story,) = program_of(script(program, made="x")).stories
    (printed,) = [e for e in story.events if e.name == "builtins.print"]
    columns = Spreads(story).of(printed.args[0])
    assert columns is not None
    assert columns[0] is None
    assert columns[1] is not None
