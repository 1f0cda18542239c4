"""`verify`, `run --verify` and `diagnose --verify`: what they take, print and return."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from traindx import api
from traindx.cli.main import main
from traindx.diagnosis.engine import judge
from traindx.errors import CannotRerun
from traindx.examples import decay
from traindx.experiments.verification.verification import Verification
from traindx.model.findings import Diagnosis, Experiment, Trial, Verdict
from traindx.model.run import Run

STEPS = tuple(map(float, range(60)))


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    values = np.concatenate([decay(100), 0.4 * np.exp(np.arange(40) / 6.0)])
    path = tmp_path / "broken.log"
    path.write_text("".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(values)))
    return path


class Fake:
    """Stands in for the experiments: confirms the first cause, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, object] = {}
        self.is_interrupted = False
        self.error: Exception | None = None

    def __call__(
        self,
        command: tuple[str, ...],
        run: Run | None = None,
        diagnosis: Diagnosis | None = None,
        *,
        request: api.VerifyRequest,
        tell: object,
        warn: object,
        announce: object,
    ) -> Verification:
        self.asked = {"command": tuple(command), "request": request}
        warn("side effect not ruled out: the network")  # type: ignore[operator]
        announce("going to test lr-too-high")  # type: ignore[operator]
        if self.error is not None:
            raise self.error
        assert run is not None
        diagnosis = diagnosis or api.diagnose(run)
        trials = (
            Trial(False, 0, STEPS, tuple(2.0 + s for s in STEPS), ("it diverges",)),
            Trial(True, 0, STEPS, tuple(2.0 / (1 + s) for s in STEPS)),
        )
        made = Experiment("lr-too-high", "half the lr", Verdict.CONFIRMED, "it learns", trials)
        judged = judge(diagnosis, [made], run)
        return Verification(run, judged, ("bad-batch: no time",), self.is_interrupted)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(api, "verify_run", made)
    return made


def test_verify_reads_any_artifact_and_passes_the_request_on(
    broken: Path, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = ["--cause", "lr-too-high", "--max-steps", "50", "--seeds", "2", "--max-time", "60"]
    code = main(
        ["verify", str(broken), *bounds, "--format", "json", "--", "python", "t.py", "--seeds", "9"]
    )
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert code == 0
    assert fake.asked["command"] == ("python", "t.py", "--seeds", "9")
    assert fake.asked["request"] == api.VerifyRequest(("lr-too-high",), (), 60.0, 50, 2)
    assert data["root_causes"][0]["confirmed"] is True
    assert data["experiments"][0]["verdict"] == "confirmed"
    assert err.index("side effect not ruled out: the network") < err.index("not tested: bad-batch")


def test_diagnose_verify(broken: Path, fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["diagnose", str(broken), "--verify", "--fail-on", "low", "--", "python", "t.py"])
    out = " ".join(capsys.readouterr().out.split())
    assert code == 1
    assert "confirmed by experiment" in out and "as it is loss 2 → 58.5 in 60 steps" in out


def test_a_command_that_cannot_be_rerun(
    broken: Path, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.error = CannotRerun("it asks for input")
    assert main(["verify", str(broken), "--", "python", "t.py"]) == 2
    assert "traindx: it asks for input" in capsys.readouterr().err
    # the diagnosis that was asked for all the same
    assert main(["diagnose", str(broken), "--verify", "--quiet", "--", "python", "t.py"]) == 0
    out, err = capsys.readouterr()
    assert "learning rate" in out and "not verified: it asks for input" in err


def test_ctrl_c_reports_what_is_known(
    broken: Path, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.is_interrupted = True
    assert main(["verify", str(broken), "--", "python", "t.py"]) == 130
    out, err = capsys.readouterr()
    assert "confirmed by experiment" in out and "interrupted; this is what is known" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify"], "no command to rerun. Try: traindx verify -- python train.py"),
        (["verify", "--"], "no command to rerun"),
        (["verify", "rec", "python", "t.py"], "no command to rerun. Try: traindx verify RECORDING"),
        (["diagnose", "--verify", "x"], "Try: traindx diagnose RECORDING --verify -- python"),
        (["verify", "--cause", "lr-to-high", "--", "x"], "Try: lr-too-high"),
        (["verify", "absent", "--", "true"], "absent"),
        (["run", "--verify", "--cause", "nonsense", "--", "true"], "no cause is called 'nonsense'"),
    ],
)
def test_misuse(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["traindx", *arguments])
    assert main() == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["0", "-1", "many"])
def test_counts_are_counts(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["verify", f"--seeds={wrong}", "--", "true"])
    assert "is no count such as 3" in capsys.readouterr().err


def test_two_dashes_still_end_the_options_of_diagnose(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = broken.rename(broken.with_name("-odd.log"))
    monkeypatch.chdir(odd.parent)
    assert main(["diagnose", "--quiet", "--", "-odd.log"]) == 0
    assert "learning rate" in capsys.readouterr().out


def test_the_demo_without_torch_says_what_more_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["demo", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "learning rate is too high" in out and "Try: pip install torch" in err
    assert main(["demo", "--log", "--quiet"]) == 0
    assert "torch" not in capsys.readouterr().err


# the real thing


def digest(folder: Path) -> dict[str, str]:
    found = (p for p in folder.rglob("*") if p.is_file())
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def test_the_whole_way(tmp_path: Path) -> None:
    """One line is missing from the program; the rerun with it proves that this is the cause."""
    project = tmp_path / "project"
    project.mkdir()
    source = files("traindx.demo").joinpath("strokes.py").read_text(encoding="utf-8")
    (project / "strokes.py").write_text(source.replace("241", "121"), encoding="utf-8")
    before = digest(project)
    bounds = ["--format", "json", "--seeds", "1", "--output", str(tmp_path / "out")]
    command = [sys.executable, "strokes.py"]
    done = subprocess.run(
        [sys.executable, "-m", "traindx", "verify", *bounds, "--", *command],
        cwd=project,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    first = data["root_causes"][0]
    assert (first["cause"], first["confirmed"]) == ("missing-zero-grad", True)
    assert data["status"] == "diagnosis_complete"
    assert "confirmed by experiment" in data["summary"]
    control, changed = data["experiments"][0]["trials"][:2]
    assert control["symptoms"] and not changed["symptoms"]
    assert digest(project) == before
    made = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"run.json", "diagnosis.json", "verification.png", "fix.patch"} <= made
    again = Diagnosis.from_dict(data)
    assert replace(again, duration_s=0.0).experiments[0].verdict is Verdict.CONFIRMED
