"""Where a recording goes, and what it finds there."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from traindx.capture.launcher.recording_folder import make_folder, script_name, write_about
from traindx.errors import UsageError


def test_new_folders_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = {make_folder(None, ("python", "train.py")) for _ in range(3)}
    assert len(made) == 3
    assert all(f.parent == tmp_path / "traindx-runs" and "-train" in f.name for f in made)
    assert (tmp_path / "traindx-runs" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "src/train.py", "--lr", "1"), "train"),
        (("torchrun", "--nproc-per-node", "2", "a b.py"), "a-b"),
        (("python", "-m", "pkg.train"), "pkg.train"),
        (("bash", "go.sh"), "go"),
        (("/usr/bin/env",), "env"),
        (("python", "-m"), "python"),
        (("…",), "command"),
    ],
)
def test_a_recording_is_named_after_the_script(command: tuple[str, ...], name: str) -> None:
    assert script_name(command) == name


def test_an_earlier_recording_is_put_aside(tmp_path: Path) -> None:
    write_about(tmp_path, {"is_running": False})
    for name in ("rank0-1.jsonl", "output.log", "output.2.log", "diagnosis.json", "model.pt"):
        (tmp_path / name).write_text("old")
    for _ in range(2):
        assert make_folder(str(tmp_path), ("true",)) == tmp_path
        assert {p.name for p in tmp_path.iterdir()} == {"model.pt", ".earlier"}
        write_about(tmp_path, {"is_running": False})
    aside = sorted((tmp_path / ".earlier").iterdir())
    assert len(aside) == 2
    assert (aside[0] / "rank0-1.jsonl").read_text() == "old"


def test_a_recording_that_is_growing_is_left_alone(tmp_path: Path) -> None:
    about = {"is_running": True, "parent": os.getppid(), "host": socket.gethostname()}
    write_about(tmp_path, about)
    with pytest.raises(UsageError, match="another traindx run is recording there"):
        make_folder(str(tmp_path), ("true",))
    write_about(tmp_path, {**about, "host": "another"})
    with pytest.raises(UsageError):
        make_folder(str(tmp_path), ("true",))


def test_a_recording_whose_parent_was_killed_is_put_aside(tmp_path: Path) -> None:
    gone = os.posix_spawn("/bin/sh", ["sh", "-c", ":"], {})
    os.waitpid(gone, 0)
    write_about(tmp_path, {"is_running": True, "parent": gone, "host": socket.gethostname()})
    make_folder(str(tmp_path), ("true",))
    assert not (tmp_path / "run.json").exists()


def test_what_is_written_replaces_the_old_in_one_piece(tmp_path: Path) -> None:
    write_about(tmp_path, {"a": 1})
    write_about(tmp_path, {"a": 2})
    assert json.loads((tmp_path / "run.json").read_text()) == {"a": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
