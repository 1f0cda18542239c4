"""The generated pages say what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from traindx.causes import all_causes

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(generate: ModuleType) -> None:
    assert generate.stale_pages() == [], "run: make docs"


def test_the_pages_are_the_same_every_time(generate: ModuleType) -> None:
    assert generate.pages() == generate.pages()


def test_every_cause_is_on_both_pages(generate: ModuleType) -> None:
    pages = generate.pages()
    for name in all_causes():
        assert f"\n### {name}\n" in pages["causes.md"]
        assert f"`{name}`" in pages["reach.md"]


def test_every_detector_is_documented(generate: ModuleType) -> None:
    page = generate.pages()["detectors.md"]
    for detector in generate.built_in():
        assert f"\n### {detector.name}\n" in page


def test_a_cause_is_either_reached_or_listed_as_unreached(generate: ModuleType) -> None:
    table, _, rest = generate.reach_page().partition("## Not reached yet")
    unreached, _, _ = rest.partition("## By need")
    for name in all_causes():
        assert (f"| `{name}` |" in table) != (f"`{name}`" in unreached)


def test_check_names_the_stale_pages(
    generate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(generate, "HERE", tmp_path)
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    capsys.readouterr()
    (tmp_path / "reach.md").write_text("old", encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.strip() == "docs/reach.md is stale. Try: make docs"
