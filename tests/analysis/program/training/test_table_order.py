"""In which order the rows of tables stand."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.table_order import TableOrder, rows_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        ("table", TableOrder.AS_READ),
        ('table[table.age > 3]["label"].fillna(0)', TableOrder.AS_READ),
        ('table.groupby("id").agg({"x": "mean"}).values', TableOrder.BY_KEY),
        ('table.sort_values("id").drop(columns="id")', TableOrder.BY_KEY),
        ('table.groupby("id", sort=False).sum()', None),
        ('table.merge(other, on="id")', None),
        ("table.loc[wanted]", None),
    ],
)
def test_rows_of(rows: str, order: TableOrder | None) -> None:
    text = f'import pandas as pd\ntable = pd.read_csv("t.csv")\nprint({rows})\n'
    [story] = program_of(make_run(sources={"t.py": text})).stories
    [used] = [e for e in story.events if e.name == "builtins.print"]
    found = rows_of(used.args[0])
    assert (None if found is None else found.order) is order
