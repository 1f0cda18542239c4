"""`traindx check` as a user runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.test_commands import is_misuse
from tests.cli.test_commands import traindx as run_traindx

import traindx

FAULTY = """import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for x, y in train_loader:
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss
"""
RIGHT = FAULTY.replace(
    "    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()"
).replace("+= loss", "+= loss.item()")


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(FAULTY)
    return path


def test_lines_like_a_linter(faulty: Path) -> None:
    done = run_traindx("check", "train.py", cwd=faulty.parent)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert any(line.startswith("train.py:9: missing-zero-grad: ") for line in lines)
    assert any(line.startswith("train.py:11: graph-kept-alive: ") for line in lines)
    assert any(line.startswith("    fix: ") for line in lines)
    assert "---" not in done.stdout


def test_verbose_shows_the_patch(faulty: Path) -> None:
    done = run_traindx("check", faulty, "--verbose")
    assert "    +    total += loss.item()" in done.stdout


def test_fail_on(faulty: Path) -> None:
    assert run_traindx("check", faulty, "--fail-on", "high").returncode == 1
    assert run_traindx("check", faulty, "--fail-on", "critical").returncode == 1
    faulty.write_text(RIGHT)
    done = run_traindx("check", faulty, "--fail-on", "low")
    assert done.returncode == 0 and done.stdout == "No fault shown in 1 file.\n"


def test_a_remark_does_not_fail(tmp_path: Path) -> None:
    path = tmp_path / "loss.py"
    path.write_text("import torch\n\ndef my_loss(p):\n    return torch.log(torch.softmax(p, 1))\n")
    done = run_traindx("check", path, "--fail-on", "low")
    assert done.returncode == 0 and "(remark)" in done.stdout


@pytest.mark.parametrize("form", ["json", "sarif", "markdown", "html"])
def test_formats(faulty: Path, form: str) -> None:
    done = run_traindx("check", faulty, "--format", form)
    assert done.returncode == 0 and "graph-kept-alive" in done.stdout
    if form in ("json", "sarif"):
        assert json.loads(done.stdout)


def test_json_holds_the_contract(faulty: Path) -> None:
    data = json.loads(run_traindx("check", faulty, "--format", "json").stdout)
    causes = {c["cause"]: c for c in data["root_causes"]}
    assert set(causes) == {"missing-zero-grad", "graph-kept-alive"}
    assert causes["graph-kept-alive"]["location"]["line"] == 11
    assert data["skipped"] == [] and data["failed"] == []


def test_folders_and_what_is_left_out(faulty: Path) -> None:
    root = faulty.parent
    for name in (".git", "venv", "site-packages", "node_modules", ".tox"):
        (root / name).mkdir()
        shutil.copy(faulty, root / name / "copy.py")
    (root / "deep" / "er").mkdir(parents=True)
    shutil.copy(faulty, root / "deep" / "er" / "other.py")
    (root / "plain.py").write_text("print('nothing to do with training')\n")
    out = run_traindx("check", ".", cwd=root).stdout
    assert "deep/er/other.py:9" in out and "copy.py" not in out and "plain.py" not in out


def test_a_file_that_does_not_parse_is_said_not_to_be_checked(tmp_path: Path) -> None:
    (tmp_path / "torn.py").write_text("import torch\nclass Net(torch.nn.Module\n")
    done = run_traindx("check", tmp_path)
    assert done.returncode == 0 and "not checked" in done.stdout and "torn.py" in done.stdout


def test_misuse(tmp_path: Path) -> None:
    assert is_misuse(run_traindx("check", tmp_path / "absent.py"))
    assert run_traindx("check").returncode == 2


def test_the_patches_apply_one_after_the_other(faulty: Path) -> None:
    root = faulty.parent
    for _ in range(2):
        data = json.loads(run_traindx("check", "train.py", "--format", "json", cwd=root).stdout)
        patch = data["root_causes"][0]["remedies"][0]["patch"]
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=root, check=True)
    assert faulty.read_text() == RIGHT
    assert run_traindx("check", faulty, "--fail-on", "low").returncode == 0


def test_api(faulty: Path) -> None:
    from traindx import api

    causes = {h.cause for h in api.check(faulty).root_causes}
    assert causes == {"missing-zero-grad", "graph-kept-alive"}
    assert traindx.__version__
