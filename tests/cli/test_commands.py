"""The program as a user runs it: outputs, exit codes, and what bad input leads to."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from traindx.examples import decay

PROGRAM = [sys.executable, "-m", "traindx"]


def traindx(
    *arguments: str | Path, stdin: str | bytes = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=data,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def log_of(values: object) -> str:
    return "".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(values))  # type: ignore[arg-type]


HEALTHY = log_of(decay(120))
BROKEN = log_of(np.concatenate([decay(100), 0.4 * np.exp(np.arange(40) / 6.0)]))


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    path = tmp_path / "healthy.log"
    path.write_text(HEALTHY)
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.log"
    path.write_text(BROKEN)
    return path


def test_json_is_all_that_standard_output_holds(broken: Path) -> None:
    done = traindx("diagnose", broken, "--format", "json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert data["schema_version"] == "1"
    assert data["root_causes"][0]["cause"] == "lr-too-high"
    evidence = data["root_causes"][0]["evidence"][0]
    assert evidence["artifact"].endswith("broken.log") and evidence["locator"].startswith("line ")


def test_evidence_can_be_looked_up(broken: Path) -> None:
    data = json.loads(traindx("diagnose", broken, "--format", "json").stdout)
    evidence = data["root_causes"][0]["evidence"][0]
    first = int(evidence["locator"].split()[1])
    step = float(broken.read_text().splitlines()[first - 1].split()[1])
    assert step == evidence["steps"][0]


def test_healthy_runs_say_so(healthy: Path) -> None:
    done = traindx("diagnose", healthy)
    assert done.returncode == 0
    assert "No problem found" in done.stdout
    assert json.loads(traindx("diagnose", healthy, "--format", "json").stdout)["root_causes"] == []


def test_standard_input(broken: Path) -> None:
    data = json.loads(traindx("diagnose", "-", "--format", "json", stdin=BROKEN).stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"
    assert data["artifacts"][0]["path"] == "standard input"


def test_the_current_folder_is_the_default(broken: Path) -> None:
    data = json.loads(traindx("diagnose", "--format", "json", cwd=broken.parent).stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"


def test_fail_on(broken: Path, healthy: Path) -> None:
    assert traindx("diagnose", broken, "--fail-on", "high").returncode == 1
    assert traindx("diagnose", healthy, "--fail-on", "low").returncode == 0


def test_output_folder(broken: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = traindx("diagnose", broken, "--output", folder, "--format", "json")
    made = {p.name for p in folder.iterdir()}
    assert {"diagnosis.json", "report.html", "report.md"} <= made
    assert any(name.endswith(".png") for name in made)
    data = json.loads(done.stdout)
    assert set(data["analysis_artifacts"]) >= {"report", "loss_visualization"}
    assert json.loads((folder / "diagnosis.json").read_text())["status"] == data["status"]


@pytest.mark.parametrize("form", ["terminal", "json", "markdown", "html", "sarif"])
def test_every_format(broken: Path, form: str) -> None:
    done = traindx("diagnose", broken, "--format", form)
    assert done.returncode == 0 and done.stdout.strip()


def test_quiet_is_one_line(broken: Path) -> None:
    assert len(traindx("diagnose", broken, "--quiet").stdout.strip().splitlines()) == 1


def test_context_package(broken: Path, tmp_path: Path) -> None:
    package = tmp_path / "package.json"
    package.write_text(
        json.dumps(
            {
                "task": "Diagnose training failure",
                "artifacts": {"training_logs": "broken.log", "config": "absent.yaml"},
                "symptoms": ["Loss diverged"],
            }
        )
    )
    data = json.loads(traindx("diagnose", "--context", package, "--format", "json").stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"
    assert any("absent.yaml" in a["path"] and a["warnings"] for a in data["artifacts"])
    assert any("absent.yaml" in s["how"] for s in data["skipped"])


def test_inspect_does_not_judge(broken: Path) -> None:
    done = traindx("inspect", broken)
    assert "loss" in done.stdout and "lr-too-high" not in done.stdout
    assert json.loads(traindx("inspect", broken, "--format", "json").stdout)


def test_explain() -> None:
    assert "learning rate" in traindx("explain", "lr-too-high").stdout
    assert "What it detects" in traindx("explain", "loss-divergence").stdout
    assert "lr-too-high" in traindx("explain", "--list").stdout
    wrong = traindx("explain", "lr-to-high")
    assert wrong.returncode == 2 and "lr-too-high" in wrong.stderr


def test_demo() -> None:
    done = traindx("demo", "--format", "json")
    assert json.loads(done.stdout)["root_causes"][0]["cause"] == "lr-too-high"


def is_misuse(done: subprocess.CompletedProcess[str]) -> bool:
    one_message = done.stderr.startswith("traindx: ") and "Traceback" not in done.stderr
    return done.returncode == 2 and one_message and not done.stdout


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    done = traindx("diagnose", tmp_path / "absent.log")
    assert is_misuse(done) and "absent.log" in done.stderr


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_text("")
    assert is_misuse(traindx("diagnose", tmp_path / "empty.log"))


def test_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "noise.log").write_bytes(np.random.default_rng(0).bytes(100_000))
    assert is_misuse(traindx("diagnose", tmp_path / "noise.log"))


def test_a_bad_file_among_good_ones_costs_nothing(broken: Path, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(np.random.default_rng(0).bytes(10_000))
    done = traindx("diagnose", broken, tmp_path / "noise.bin", "--format", "json")
    data = json.loads(done.stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"
    assert any(a["warnings"] for a in data["artifacts"] if "noise.bin" in a["path"])


def test_a_folder_of_unrelated_files(broken: Path, tmp_path: Path) -> None:
    many = tmp_path / "images"
    many.mkdir()
    for i in range(3000):
        (many / f"{i}.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes([i % 256]) * 50)
    data = json.loads(traindx("diagnose", tmp_path, "--format", "json").stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"


def test_a_symlink_loop(broken: Path) -> None:
    (broken.parent / "loop").symlink_to(broken.parent, target_is_directory=True)
    data = json.loads(traindx("diagnose", broken.parent, "--format", "json").stdout)
    assert data["root_causes"][0]["cause"] == "lr-too-high"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(broken: Path) -> None:
    broken.chmod(stat.S_IWUSR)
    assert is_misuse(traindx("diagnose", broken))


def test_ragged_rows_and_mixed_encodings(tmp_path: Path) -> None:
    rows = "".join(f"{i},{v:.4f}\n" for i, v in enumerate(decay(50)))
    text = ("epoch,loss\n" + rows).encode() + b"\xff\xfe,broken\n51\n,,,,\n52,0.41,extra\n"
    (tmp_path / "losses.csv").write_bytes(text)
    data = json.loads(traindx("diagnose", tmp_path / "losses.csv", "--format", "json").stdout)
    assert data["status"] == "no_problem_found"


def test_one_endless_line(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text(HEALTHY + "x" * 10_000_000 + "\n" + BROKEN)
    done = traindx("diagnose", path, "--format", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["artifacts"][0]["warnings"]


def test_terminal_escapes_in_a_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "evil.log"
    path.write_text(BROKEN + "\x1b]0;owned\x07\x1b[2J loss\x1b[31m_x: 3\n" * 10)
    out = traindx("diagnose", path, "--verbose").stdout + traindx("inspect", path).stdout
    assert "\x1b" not in out and "\x07" not in out


def test_output_that_cannot_be_written(broken: Path) -> None:
    assert is_misuse(traindx("diagnose", broken, "--output", "/proc/nowhere/x"))


def test_unknown_options_are_misuse() -> None:
    assert traindx("diagnose", "--no-such-option").returncode == 2
    assert traindx("no-such-command").returncode == 2
