"""Caches whose key leaves out what their entries depend on."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.stale_caches import stale_caches
from traindx.examples import script

PROGRAM = """
import functools
class Source:
    def __init__(self):
        self.size, self.kept, self.rows = 1, {{}}, load()
    {method}
source = Source()
for size in range(9):
    {change}
    use(source.get(3))
"""
# fmt: off
CACHED = "@functools.cache\n    def get(self, i):\n        return self.cut(i)\n    def cut(self, i):\n        return self.rows[i][:self.size]"
KEPT = "def get(self, i):\n        if i in self.kept: return self.kept[i]\n        self.kept[i] = self.rows[i][:self.size]\n        return self.kept[i]"
BY_SIZE = "def get(self, i):\n        key = (i, self.size)\n        if key not in self.kept: self.kept[key] = self.rows[i][:self.size]\n        return self.kept[key]"
# fmt: on


@pytest.mark.parametrize(
    ("method", "change", "names"),
    [
        (CACHED, "source.size = size", ["size"]),
        (KEPT, "source.size = size", ["size"]),
        (BY_SIZE, "source.size = size", []),
        (CACHED, "source.other = size", []),
        (CACHED, "pass", []),
        (KEPT, "source.size = size; source.kept.clear()", []),
    ],
)
def test_what_a_cache_leaves_out(method: str, change: str, names: list[str]) -> None:
    story = program_of(script(PROGRAM, method=method, change=change)).stories[0]
    assert [found.name for found in stale_caches(story)] == names
