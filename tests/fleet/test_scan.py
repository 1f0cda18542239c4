"""Many runs at once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from traindx.cli.main import main
from traindx.errors import UnreadableArtifact
from traindx.examples import decay
from traindx.fleet.local import FEW, scan


def write_run(folder: Path, values: object, *, seed: int = 0, accuracy: float = 0.9) -> None:
    folder.mkdir(parents=True)
    lines = [f"epoch {i} loss {v:.5f}" for i, v in enumerate(values)]  # type: ignore[arg-type]
    lines += [f"epoch {i} val_accuracy {accuracy:.4f}" for i in range(10)]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(f"lr: 0.1\nseed: {seed}\n")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for i in range(FEW + 1):
        write_run(tmp_path / f"good{i}", decay(60, seed=i), seed=i)
    climb = np.concatenate([decay(40), 0.4 * np.exp(np.arange(30) / 5.0)])
    write_run(tmp_path / "bad", climb)
    return tmp_path


def test_the_worst_comes_first(runs: Path) -> None:
    found = scan([str(runs)])
    assert len(found.rows) == FEW + 2
    assert found.ranked[0].path.endswith("bad")
    assert list(found.by_cause()) == ["lr-too-high"]
    assert not found.unread


def test_one_process_and_several_agree(runs: Path) -> None:
    alone, together = scan([str(runs)], workers=1), scan([str(runs)], workers=2)
    assert [r.path for r in alone.ranked] == [r.path for r in together.ranked]
    assert [r.causes for r in alone.ranked] == [r.causes for r in together.ranked]


def test_time_runs_out(runs: Path) -> None:
    found = scan([str(runs)], workers=1, deadline=time.monotonic() - 1)
    assert not found.rows and len(found.unread) == FEW + 2


def test_runs_that_differ_in_their_seed_only(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((0.5, 0.9, 0.7)):
        write_run(tmp_path / f"seed{seed}", decay(60), seed=seed, accuracy=accuracy)
    assert any("seed-variance" in remark for remark in scan([str(tmp_path)]).remarks)
    close = tmp_path / "close"
    for seed, accuracy in enumerate((0.90, 0.91, 0.905)):
        write_run(close / f"seed{seed}", decay(60), seed=seed, accuracy=accuracy)
    assert scan([str(close)]).remarks == []


def test_no_run_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(UnreadableArtifact):
        scan([str(tmp_path)])
    with pytest.raises(UnreadableArtifact):
        scan([str(tmp_path / "absent")])


def test_the_command(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(runs), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["runs"][0]["causes"][0]["cause"] == "lr-too-high"
    assert main(["scan", str(runs), "--fail-on", "high"]) == 1
    assert "lr-too-high" in capsys.readouterr().out
