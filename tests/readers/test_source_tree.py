from __future__ import annotations

import os
from pathlib import Path

import pytest

from traindx.errors import UnreadableArtifact
from traindx.readers.source_tree import open_sources

PROGRAM = "import torch\n"


def test_a_pipe_in_a_folder_is_said_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    os.mkfifo(tmp_path / "data.py")
    os.mkfifo(tmp_path / "config.json")
    run = open_sources([str(tmp_path)])
    assert [Path(s.path).name for s in run.sources] == ["train.py"]
    (pipe,) = (a for a in run.artifacts if a.path.endswith("data.py"))
    assert "pipe" in pipe.warnings[0]


def test_a_device_that_is_named_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").symlink_to("/dev/zero")
    with pytest.raises(UnreadableArtifact, match="a pipe or a device"):
        open_sources([str(tmp_path / "train.py")])


def test_no_more_is_read_of_a_large_file_than_is_needed_to_say_so(tmp_path: Path) -> None:
    with (tmp_path / "train.py").open("wb") as file:
        file.truncate(1 << 36)
    run = open_sources([str(tmp_path)])
    assert not run.sources
    assert "larger than" in run.artifacts[0].warnings[0]
