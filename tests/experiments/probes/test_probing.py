"""Programs that learn, only worse, probed from end to end as a user would."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from traindx.cli.main import main
from traindx.errors import UsageError
from traindx.experiments.changes import Change, Limits
from traindx.experiments.sandbox.workshop import Workshop
from traindx.model.findings import Diagnosis
from traindx.model.probes import PROBE, Effect, Probe, Probing

SLOW = """
import os, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(600, 8); y = (x[:, 0] + x[:, 1] > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for epoch in range(3):
    for i in range(0, 400, 40):
        loss = nn.functional.cross_entropy(model(x[i:i + 40]), y[i:i + 40])
        optimizer.zero_grad(); loss.backward(); optimizer.step()
with torch.no_grad():
    print("val accuracy", (model(x[400:]).argmax(1) == y[400:]).float().mean().item())
open("ran.txt", "a").write("once\\n")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def test_a_rate_that_is_too_low_is_found_and_nothing_is_touched(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["probe", "--format", "json", "--output", "out", "--max-time", "600"]
    assert main([*words, "--", sys.executable, "train.py"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["root_causes"][0]["cause"] == "lr-too-low"
    best = next(p for p in told["probes"] if p["helps"])
    assert best["metric"] in ("accuracy/val", "loss/val")
    assert best["seeds"] >= 2
    assert {"constant", "linear"} <= told["floors"].keys()
    assert told["floors"]["linear"] > told["floors"]["constant"]
    assert not (project / "ran.txt").exists()
    assert "## Probes" in (project / "out" / "report.md").read_text()
    assert 'id="probes"' in (project / "out" / "report.html").read_text()
    again = Diagnosis.from_dict(told)
    assert again.probing is not None
    assert again.to_dict()["probes"] == told["probes"]


def test_a_fork_computes_what_a_fresh_process_computes(project: Path) -> None:
    import os

    with Workshop([sys.executable, "train.py"], project, os.environ) as workshop:
        limits = Limits(300.0, None, is_recorded=False)
        fresh = workshop.rerun(Change(), 1, limits)
        workshop.warm_up()
        forked = workshop.rerun(Change(), 1, limits)
        assert workshop.is_warm
        assert (fresh.exit_code, forked.exit_code) == (0, 0)
        outputs = [(r.folder / "output.log").read_text() for r in (fresh, forked)]
    assert outputs[0] == outputs[1]
    assert "val accuracy" in outputs[0]
    assert not (project / "ran.txt").exists()


def test_a_fork_that_fails_tells_how(project: Path) -> None:
    import os

    (project / "train.py").write_text(
        "import sys\nprint(sys.argv, __name__)\nraise SystemExit(3)\n"
    )
    with Workshop([sys.executable, "train.py", "--fast"], project, os.environ) as workshop:
        workshop.warm_up()
        done = workshop.rerun(Change(), 0, Limits(300.0, None, is_recorded=False))
        said = (done.folder / "output.log").read_text()
    assert done.exit_code == 3
    assert "'--fast'] __main__" in said


def test_a_program_that_does_not_train_is_not_probed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "train.py").write_text("print('nothing to learn')\n")
    assert main(["probe", "--format", "json", "--", sys.executable, "train.py"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["probes"] == []
    assert "Nothing was probed" in told["summary"]


def test_without_a_command_there_is_one_clear_message() -> None:
    from traindx import probe

    with pytest.raises(UsageError, match="no command to rerun"):
        probe("")
    assert main(["probe"]) == 2


def test_values_that_are_no_numbers_survive_json() -> None:
    probe = Probe(
        "learning rate ÷ 10", "lr-too-high", "loss/val", float("inf"), 0.3, float("nan"),
        Effect.HELPS, 2, 100,
    )  # fmt: skip
    told = json.loads(json.dumps(Probing("loss/val", (probe,)).to_dict(), allow_nan=False))
    again = Probing.from_dict(told)
    assert again is not None
    assert again.probes[0].before == float("inf")
    assert PROBE == "probe"
