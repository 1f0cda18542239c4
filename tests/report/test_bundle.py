"""What a diagnosis leaves in a folder, and the excerpts and figures in it."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from traindx.errors import MissingExtra
from traindx.examples import make_run
from traindx.model.run import Artifact, Source
from traindx.report import figures
from traindx.report.bundle import combined_patch, write_bundle
from traindx.report.excerpts import excerpts_of, read_excerpt

from .examples import PATCH, diverged, healthy


def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_bundle_holds_everything(tmp_path: Path) -> None:
    made = write_bundle(*diverged(), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "diagnosis.json",
        "report.html",
        "report.md",
        "loss.png",
        "gradients.png",
        "gradient_analysis.md",
        "fix.patch",
    }
    assert {"loss_visualization", "gradient_analysis", "report"} <= set(made)
    assert all(Path(path).is_file() for path in made.values())
    assert (tmp_path / "out/loss.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out/fix.patch").read_text() == PATCH
    data = json.loads((tmp_path / "out/diagnosis.json").read_text())
    assert data["analysis_artifacts"] == dict(made)
    analysis = (tmp_path / "out/gradient_analysis.md").read_text()
    assert "`grad_norm`" in analysis
    assert "layers/conv1.weight/grad" in analysis


def test_a_healthy_bundle_has_no_patch_and_no_gradients(tmp_path: Path) -> None:
    made = write_bundle(*healthy(), tmp_path)
    assert "gradient_analysis" not in made
    assert not (tmp_path / "fix.patch").exists()


def test_without_matplotlib_the_rest_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_matplotlib(monkeypatch)
    made = write_bundle(*diverged(), tmp_path)
    assert "loss_visualization" not in made
    assert "traindx[figures]" in made["figures"]
    assert (tmp_path / "report.html").exists()


def test_a_figure_without_matplotlib_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_matplotlib(monkeypatch)
    with pytest.raises(MissingExtra, match="figures"):
        figures.draw_loss(*diverged(), tmp_path / "loss.png")


def test_a_patch_stands_once_and_alternatives_do_not_mix() -> None:
    _, diagnosis = diverged()
    cause = diagnosis.hypotheses[0]
    other = replace(cause.remedies[1], patch="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b")
    twice = replace(cause, remedies=(cause.remedies[0], other))
    told = replace(diagnosis, hypotheses=(twice, replace(twice, cause="second")))
    assert combined_patch(told) == PATCH


# excerpts


def numbered(path: Path, count: int) -> Path:
    path.write_text("".join(f"line {n}\n" for n in range(1, count + 1)))
    return path


def test_an_excerpt_holds_the_lines_around(tmp_path: Path) -> None:
    found = read_excerpt(numbered(tmp_path / "a.log", 100), 50)
    assert found is not None
    assert found[0] == (45, "line 45")
    assert found[-1] == (55, "line 55")
    assert read_excerpt(tmp_path / "a.log", 1) == [(n, f"line {n}") for n in range(1, 7)]


def test_an_excerpt_of_nothing_is_none(tmp_path: Path) -> None:
    path = numbered(tmp_path / "a.log", 10)
    assert read_excerpt(path, 11) is None
    assert read_excerpt(path, 0) is None
    assert read_excerpt(tmp_path / "missing.log", 1) is None
    assert read_excerpt(tmp_path, 1) is None
    assert read_excerpt(Path("\0"), 1) is None
    (tmp_path / "binary").write_bytes(b"\x80\x02\0\0\n" * 20)
    assert read_excerpt(tmp_path / "binary", 3) is None


def test_a_long_line_is_cut_and_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x" * 1_000_000 + "\nsecond\n")
    found = read_excerpt(path, 2)
    assert found is not None
    assert len(found[0][1]) == 400
    assert found[1] == (2, "second")


def test_a_link_out_of_its_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    secret = numbered(tmp_path / "secret", 5)
    (tmp_path / "run/train.log").symlink_to(secret)
    assert read_excerpt(tmp_path / "run/train.log", 2) is None
    numbered(tmp_path / "run/real.log", 5)
    (tmp_path / "run/latest.log").symlink_to(tmp_path / "run/real.log")
    assert read_excerpt(tmp_path / "run/latest.log", 2) is not None


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_excerpt(tmp_path / "pipe", 1) is None


def test_only_artifacts_are_quoted(tmp_path: Path) -> None:
    log = numbered(tmp_path / "a.log", 5)
    other = numbered(tmp_path / "other", 5)
    run = replace(
        make_run(), artifacts=(Artifact(str(log), "log"),), sources=(Source("t.py", "a\nb\nc"),)
    )
    excerpt = excerpts_of(run)
    assert excerpt(str(log), 2) is not None
    assert excerpt("t.py", 2) == [(1, "a"), (2, "b"), (3, "c")]
    assert excerpt(str(other), 2) is None
