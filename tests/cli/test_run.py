"""`traindx run` as a user runs it: the report beside the command's own output and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from traindx import api
from traindx.cli.main import main
from traindx.examples import decay


def traindx(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "traindx", "run", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        timeout=120,
        check=False,
    )


def printing(values: object, code: int = 0) -> list[str]:
    program = (
        f"import sys\nfor i, v in enumerate({[round(float(v), 5) for v in values]}):\n"  # type: ignore[attr-defined]
        f"    print(f'step {{i}} loss: {{v:.5f}}')\nsys.exit({code})"
    )
    return [sys.executable, "-c", program]


DIVERGING = np.concatenate([decay(100), 0.4 * np.exp(np.arange(40) / 6.0)])


def test_the_diagnosis_goes_to_standard_error_and_into_the_folder(tmp_path: Path) -> None:
    done = traindx("--output", "out", "--fail-on", "low", "--", *printing(DIVERGING), cwd=tmp_path)
    assert done.returncode == 0  # the command's own, whatever was found
    assert len(done.stdout.splitlines()) == 140
    assert "lr-too-high" in done.stderr and "nothing was recorded inside" in done.stderr
    made = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"run.json", "output.log", "diagnosis.json", "report.html", "report.md"} <= made
    data = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert data["root_causes"][0]["cause"] == "lr-too-high"
    assert data["root_causes"][0]["evidence"][0]["artifact"] == "out/output.log"


def test_json_never_goes_to_standard_output(tmp_path: Path) -> None:
    done = traindx("--format", "sarif", "--", *printing(decay(120), code=3), cwd=tmp_path)
    assert done.returncode == 3
    assert len(done.stdout.splitlines()) == 120
    (folder,) = (tmp_path / "traindx-runs").glob("2*")
    assert json.loads((folder / "report.sarif").read_text())["version"] == "2.1.0"
    assert f"wrote {Path('traindx-runs', folder.name, 'report.sarif')}" in done.stderr


def test_quiet_says_the_verdict_only(tmp_path: Path) -> None:
    done = traindx("--quiet", "--", *printing(decay(120)), cwd=tmp_path)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no command to run"),
        (("--",), "no command to run"),
        (("--overhead", "90%", "--", "true"), "is no share such as 2%"),
        (("--hang-after", "0", "--", "true"), "is not a number of seconds"),
        (("--no-such-option", "--", "true"), "unrecognized arguments"),
        (("--context", "missing.json", "--", "true"), "missing.json: cannot be read"),
    ],
)
def test_misuse(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["run", *arguments])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_command_may_have_options_and_dashes_of_its_own(tmp_path: Path) -> None:
    script = "import sys; print(sys.argv[1:])"
    given = ["--quiet", "--", "--lr", "3", "--"]
    done = traindx("--quiet", "--", sys.executable, "-c", script, *given, cwd=tmp_path)
    assert done.stdout == f"{given}\n"


def test_a_diagnosis_that_fails_does_not_change_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(api, "diagnose", fail)
    code = main(["run", "--output", str(tmp_path), "--", "sh", "-c", "echo step 1 loss 2; exit 4"])
    told = capfd.readouterr()
    assert (code, told.out) == (4, "step 1 loss 2\n")
    assert "the diagnosis failed: ZeroDivisionError: inside; the recording is in" in told.err
    assert "Traceback" not in told.err
