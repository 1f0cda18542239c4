"""Diffs are applied exactly, or not at all."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.errors import PatchFailed
from traindx.experiments.sandbox import applied_patch

BEFORE = "a = 1\nb = 2\nc = 3\n"
PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 5\n c = 3\n"


def applied(patch: str, folder: Path) -> None:
    def find(path: PurePosixPath) -> list[Path]:
        return [folder / path] if (folder / path).is_file() else []

    applied_patch.apply(patch, find, lambda path, data: path.write_bytes(data) and None)


def test_a_hunk_replaces_its_lines(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(BEFORE)
    applied(PATCH, tmp_path)
    assert (tmp_path / "x.py").read_text() == "a = 1\nb = 5\nc = 3\n"


def test_line_ends_and_a_shift_are_kept(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"# new\r\n# lines\r\n" + BEFORE.replace("\n", "\r\n").encode())
    applied(PATCH, tmp_path)
    after = (tmp_path / "x.py").read_bytes()
    assert after == b"# new\r\n# lines\r\na = 1\r\nb = 5\r\nc = 3\r\n"


@pytest.mark.parametrize("text", ["a = 1\nb = 3\nc = 3\n", "0\n" + BEFORE + BEFORE, ""])
def test_a_hunk_that_does_not_fit_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(text)
    with pytest.raises(PatchFailed, match=r"hunk 1 of 1 \(@@ -1,3"):
        applied(PATCH, tmp_path)
    assert (tmp_path / "x.py").read_text() == text


@pytest.mark.parametrize("name", ["../x.py", "/etc/x.py", "b/../../x.py"])
def test_a_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    patch = PATCH.replace("+++ b/x.py", f"+++ {name}")
    with pytest.raises(PatchFailed, match="leads out"):
        applied(patch, tmp_path)


@pytest.mark.parametrize("patch", ["", "nonsense", PATCH[:-20], PATCH.replace("+++ b/x.py\n", "")])
def test_a_damaged_patch_is_refused(patch: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(BEFORE)
    with pytest.raises(PatchFailed):
        applied(patch, tmp_path)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "-e", "+f", "@@ g"]), max_size=12)


@given(before=LINES, after=LINES, ends=st.tuples(st.booleans(), st.booleans()))
def test_it_agrees_with_what_made_the_diff(
    before: list[str], after: list[str], ends: tuple[bool, bool]
) -> None:
    old = [f"{line}\n" for line in before]
    new = [f"{line}\n" for line in after]
    for lines, is_ended in ((old, ends[0]), (new, ends[1])):
        if lines and lines[-1] != "\n" and not is_ended:
            lines[-1] = lines[-1][:-1]
    made = difflib.unified_diff(old, new, "a/x", "b/x")
    text = "".join(m if m.endswith("\n") else f"{m}\n\\ No newline at end of file\n" for m in made)
    if text:
        parts = applied_patch.parse(text)
        assert applied_patch._apply(parts[0], "".join(old).encode()) == "".join(new).encode()


def test_it_agrees_with_git(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text(BEFORE)
    applied(PATCH, tmp_path / "ours")
    run = ["git", "apply", "-"]
    subprocess.run(run, input=PATCH.encode(), cwd=tmp_path / "theirs", check=True)
    assert (tmp_path / "ours/x.py").read_text() == (tmp_path / "theirs/x.py").read_text()
