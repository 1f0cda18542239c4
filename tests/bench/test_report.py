"""The one report of all benchmarks."""

from __future__ import annotations

from bench.__main__ import names, parts
from bench.accuracy.pages import Table


def test_packages_and_modules_are_run_and_the_corpus_first() -> None:
    found = names()
    assert found[:2] == ["corpus", "peers"]
    assert {"accuracy", "experiments", "overhead", "routing", "startup"} <= set(found)


def test_what_is_printed_becomes_paragraphs_and_tables() -> None:
    made = list(parts("two runs\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nthe end\n"))
    assert made == ["two runs", Table(("a", "b"), (("1", "2"),)), "the end"]
