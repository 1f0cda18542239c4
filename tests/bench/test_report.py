"""The one report of all benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.__main__ import names, parts
from bench.accuracy import __main__ as accuracy
from bench.accuracy.pages import Figure, Table, to_html

from bench import __main__ as everything
from bench import routing, startup


def test_packages_and_modules_are_run_and_the_corpus_first() -> None:
    found = names()
    assert found[:2] == ["corpus", "peers"]
    assert {"accuracy", "experiments", "overhead", "routing", "startup"} <= set(found)


def test_what_is_printed_becomes_paragraphs_and_tables() -> None:
    made = list(parts("two runs\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nthe end\n"))
    assert made == ["two runs", Table(("a", "b"), (("1", "2"),)), "the end"]


def test_a_figure_that_is_named_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "FOLDER", tmp_path)
    (tmp_path / "curve.svg").write_text("<svg/>", encoding="utf-8")
    made = tuple(parts("# How good\n\n![a curve](curve.svg)\n\n![gone](gone.svg)"))
    assert made == ("# How good", Figure("curve", "<svg/>", "a curve"))
    page = to_html("All", [everything.Section("one", made)])
    assert "<h3>How good</h3><figure" in page
    assert "<svg/>" in page


def test_a_benchmark_that_fails_leaves_the_figures_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> int:
        raise OSError("no room")

    def works() -> int:
        print("| a |\n|---|\n| 42 |")
        return 0

    monkeypatch.setattr(accuracy, "FOLDER", tmp_path)
    monkeypatch.setattr(startup, "main", fails)
    monkeypatch.setattr(routing, "main", works)
    assert everything.main(["--only", "startup", "--only", "routing"]) == 1
    written = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert "It failed: OSError: no room" in written
    assert "| 42 |" in written
