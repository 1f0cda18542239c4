"""Training code is kept as it is, and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.errors import UnreadableArtifact
from traindx.readers.formats.python_source import MAX_BYTES, read, sniff

CODE = "import torch\n\n\ndef main():\n    loss.backward()\n"


def write(folder: Path, text: str | bytes, name: str = "train.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sniffed(path: Path) -> float:
    return sniff(path, path.read_bytes()[: 64 << 10])


def test_a_script(tmp_path: Path) -> None:
    path = write(tmp_path, CODE.replace("\n", "\r\n"))
    run = read(path)
    assert sniffed(path) > 0.9
    assert run.sources[0].text == CODE
    assert run.sources[0].path == str(path)


def test_code_that_trains_comes_first(tmp_path: Path) -> None:
    other = write(tmp_path, "import os\n\nprint(os.name)\n", "tool.py")
    assert 0.3 < sniffed(other) < sniffed(write(tmp_path, CODE))


def test_code_by_another_name(tmp_path: Path) -> None:
    assert sniffed(write(tmp_path, CODE, "train")) > 0.5
    assert sniffed(write(tmp_path, CODE, "code.txt")) > 0.5


@pytest.mark.parametrize(
    "text",
    ["Epoch 1 loss 0.5\n", "Traceback (most recent call last):\n  File 'x'\nValueError: y\n",
     "import substitution is a policy\nof states\n", "x = 1\n", ""],
)  # fmt: skip
def test_what_is_no_program(tmp_path: Path, text: str) -> None:
    assert sniffed(write(tmp_path, text, "notes.txt")) == 0.0


def test_code_with_an_error_is_still_code(tmp_path: Path) -> None:
    path = write(tmp_path, "import torch\ndef f(:\n")
    assert sniffed(path) > 0.9
    assert read(path).sources


def test_it_is_never_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    read(write(tmp_path, f"import torch\nopen({str(target)!r}, 'w')\n"))
    assert not target.exists()


def test_size_is_bounded(tmp_path: Path) -> None:
    run = read(write(tmp_path, CODE + "# x\n" * (MAX_BYTES // 2)))
    assert len(run.sources[0].text) <= MAX_BYTES
    assert run.artifacts[0].warnings


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02" * 100])
def test_nothing_and_binary_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableArtifact):
        read(write(tmp_path, data))
