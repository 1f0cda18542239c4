"""A mean is a sum over a count of the same things."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.miscounts import Miscounted, miscounts
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size={size})
{before}
for epoch in range(3):
    {top}
    for x, y in loader:
        right += {term}
        seen += {count}
    print(right / {below})
"""
MATCHES = "(model(x).argmax(1) == y).sum().item()"


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({}, []),
        ({"below": "len(loader)"}, [Miscounted.EXAMPLES_BY_BATCHES]),
        ({"below": "len(loader)", "size": "1"}, []),
        ({"count": "1"}, [Miscounted.EXAMPLES_BY_COUNTED_BATCHES]),
        ({"before": "right = 0", "top": "seen = 0"}, [Miscounted.SUM_GOES_ON]),
        ({"before": "seen = 0", "top": "right = 0"}, [Miscounted.COUNT_GOES_ON]),
    ],
)
def test_what_is_wrong_with_a_mean(parts: dict[str, str], wrong: list[Miscounted]) -> None:
    usual = {"before": "", "top": "right = seen = 0", "term": MATCHES, "count": "len(y)",
             "below": "seen", "size": "32"}  # fmt: skip
    found = miscounts(program_of(script(PROGRAM, **{**usual, **parts})))
    assert [miscount.wrong for miscount in found] == wrong
