"""The bench of real runs counts what its labels say, and fits without what it judges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.curve_weights import Example, fit, left_out, table_of
from bench.real_runs import Answer, Row

from bench import curve_weights, real_runs
from traindx.analysis.courses import fitted_weights

HEADER = "file,repo,should_alarm,causes,label\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    falls = "epoch,loss,val_loss\n" + "".join(
        f"{i},{2.0 * 0.9**i:.4f},{2.1 * 0.91**i:.4f}\n" for i in range(30)
    )
    turns = "epoch,loss,val_loss\n" + "".join(
        f"{i},{2.0 * 0.8**i:.4f},{1.0 + 0.05 * i + 1.5 * 0.5**i:.4f}\n" for i in range(30)
    )
    (tmp_path / "falls.csv").write_text(falls)
    (tmp_path / "turns.csv").write_text(turns)
    rows = "falls.csv,a/a,no,,healthy\nturns.csv,b/b,yes,overfitting;abstain,overfit\n"
    (tmp_path / "labels.csv").write_text(HEADER + rows)
    monkeypatch.setenv("REAL_RUNS", str(tmp_path))
    return tmp_path


def test_counts_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = real_runs.read_rows(folder)
    assert [r.label for r in rows] == ["no", "yes"] and rows[1].first == "overfitting"
    answers = [real_runs.judge(r, real_runs.read_all(rows)[r.file]) for r in rows]
    real_runs.print_counts("Here", answers)
    printed = capsys.readouterr().out
    assert "yes: 1 of 1 right" in printed and "no: 1 of 1 right" in printed


def test_without_a_folder_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REAL_RUNS", str(tmp_path))
    assert real_runs.main() == 0 and curve_weights.main() == 0
    assert "skipped" in capsys.readouterr().out


def test_outcomes() -> None:
    row = Row(
        Path("a"), "a", "a/a", "yes", frozenset({"overfitting", "abstain"}), "overfitting", ""
    )
    assert Answer(row, "insufficient_evidence", (), ("lr-too-low",), "").is_right
    assert Answer(row, "partial_diagnosis", ("overfitting",), (), "").is_right
    assert not Answer(row, "partial_diagnosis", ("lr-zero",), (), "").is_right
    assert not Answer(row, "no_problem_found", (), (), "").is_right


def test_a_fit_finds_what_tells_apart_and_no_negative_weight() -> None:
    rng = np.random.default_rng(0)
    given = [
        Example(f"r{i}", f"f{i}", i % 2 == 0, np.array([[float(i % 2 == 0), rng.random()]]))
        for i in range(40)
    ]
    table = table_of(given, ["tells", "noise"])
    assert table["tells"] > 1.0 and table["noise"] >= 0.0
    assert len(fit(given, ["tells", "noise"])) == 3
    fold = {e.repository: i % 5 for i, e in enumerate(given)}
    out = left_out(given, ["tells", "noise"], fold)
    assert all((out[e.file] > 0.5) == e.is_positive for e in given)


def test_weights_are_put_back() -> None:
    shipped = fitted_weights.OVERFITTING
    with real_runs.weighed_by({"constant": 0.0}, {"constant": 0.0}):
        assert fitted_weights.OVERFITTING == {"constant": 0.0}
    assert fitted_weights.OVERFITTING is shipped
