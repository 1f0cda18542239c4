"""A rerun that tries hard to write to the user's files: they are the same afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from reruns import STEPS, prints, rerun_once

from traindx.experiments.changes import Change

PROGRAM = """
import io, os, pathlib, shutil, sqlite3, subprocess, sys, tempfile
ROOT, OTHER = {root!r}, {other!r}

def tried(name, act):
    try:
        print(f"{{name}}: {{act()}}")
    except BaseException as error:
        print(f"{{name}}: {{type(error).__name__}} {{error}}")

Path = pathlib.Path
tried("append", lambda: open(f"{{OTHER}}/logs/log.txt", "a").write("more"))
tried("appended", lambda: open(f"{{OTHER}}/logs/log.txt").read())
tried("bytes", lambda: open(os.fsencode(f"{{OTHER}}/logs/log.txt"), "rb").read())
tried("partly", lambda: open(f"{{ROOT}}/data/x.txt", "r+").write("X"))
tried("remove", lambda: os.remove(f"{{ROOT}}/data/y.txt"))
tried("removed", lambda: (os.path.exists(f"{{ROOT}}/data/y.txt"), os.path.exists("data/y.txt")))
tried("rmtree", lambda: shutil.rmtree(f"{{OTHER}}/deep"))
tried("rmtree of a link", lambda: shutil.rmtree("linked"))
tried("gone", lambda: (os.path.exists(f"{{OTHER}}/deep"), os.path.exists("linked")))
tried("makedirs", lambda: os.makedirs(f"{{OTHER}}/deep/er"))
tried("made", lambda: os.listdir(f"{{OTHER}}/deep"))
tried("exclusive", lambda: open(f"{{OTHER}}/logs/log.txt", "x"))
tried("write_text", lambda: Path(f"{{OTHER}}/logs/new.txt").write_text("hi"))
tried("glob", lambda: sorted(p.name for p in Path(OTHER, "logs").glob("*")))
tried("rename", lambda: os.replace(f"{{OTHER}}/logs/new.txt", f"{{OTHER}}/logs/log.txt"))
tried("renamed", lambda: Path(OTHER, "logs", "log.txt").read_text())
tried("raw", lambda: io.FileIO(f"{{OTHER}}/raw.txt", "w"))
tried("descriptor", lambda: os.write(os.open(f"{{OTHER}}/fd.txt", os.O_CREAT | os.O_WRONLY), b"x"))
folder = os.open(OTHER, os.O_RDONLY)
tried("beside", lambda: os.unlink("model.txt", dir_fd=folder))
tried("database", lambda: sqlite3.connect(f"{{OTHER}}/db").execute("create table t (a)").rowcount)
tried("shell", lambda: os.system(f"echo x > {{OTHER}}/sh.txt; rm -r {{ROOT}}/data; rm -r {{OTHER}}/deep"))
tried("copied", lambda: subprocess.run(["cp", "train.py", f"{{OTHER}}/model.txt"]).returncode)
tried("kill", lambda: subprocess.run(["pkill", "no-such-program"]))
tried("hard link", lambda: os.link(f"{{OTHER}}/model.txt", "hard.txt"))
tried("through it", lambda: open("hard.txt", "a").write("x"))
tried("symlink", lambda: os.symlink(f"{{OTHER}}/second.txt", "soft.txt"))
tried("through that", lambda: open("soft.txt", "a").write("x"))
tried("mode", lambda: os.chmod(f"{{OTHER}}/second.txt", 0o600))
tried("moved", lambda: shutil.move(f"{{OTHER}}/second.txt", f"{{ROOT}}/moved.txt"))
tried("chdir", lambda: (os.chdir(OTHER), open("here.txt", "w").write("x"), os.chdir(ROOT)))
tried("temporary", lambda: tempfile.NamedTemporaryFile().write(b"x"))
child = f"open({{OTHER + '/child.txt'!r}}, 'w').write('x')"
bare = {{"PATH": os.environ["PATH"]}}
tried("child", lambda: subprocess.run([sys.executable, "-c", child], env=bare).returncode)
"""

TORCH = (
    STEPS
    + """
tried("resume", lambda: torch.load(f"{OTHER}/ckpt.pt"))
tried("save", lambda: torch.save({"b": 2}, f"{OTHER}/ckpt.pt"))
tried("resumed", lambda: torch.load(f"{OTHER}/ckpt.pt", mmap=True))
tried("save here", lambda: torch.save({"b": 2}, f"{ROOT}/ckpt.pt"))
tried("saved here", lambda: torch.load("ckpt.pt"))
steps(3)
"""
)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    root, other = tmp_path / "project", tmp_path / "other"
    for folder in (root / "data", other / "logs", other / "deep" / "er", tmp_path / "third"):
        folder.mkdir(parents=True)
    files = (root / "data/x.txt", root / "data/y.txt", other / "logs/log.txt", other / "model.txt",
             other / "second.txt", other / "deep/er/z.txt", tmp_path / "third/w.txt")  # fmt: skip
    for path in files:
        path.write_text(f"{path.name}\n")
    (root / "linked").symlink_to(tmp_path / "third")
    return root, other


def test_the_users_files_are_the_same_afterwards(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    import torch

    root, other = folders
    for folder in folders:
        torch.save({"a": 1}, folder / "ckpt.pt")
    (root / "train.py").write_text(PROGRAM.format(root=str(root), other=str(other)) + TORCH)
    before = prints(tmp_path)
    rerun, output = rerun_once(root, "train.py")
    assert prints(tmp_path) == before
    assert rerun.exit_code == 0, output
    told = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    assert told["appended"] == "log.txt" and "\nmore\n" in output
    assert told["removed"] == told["gone"] == "(False, False)"
    assert told["made"] == "['er']" and told["exclusive"].startswith("FileExistsError")
    assert told["glob"] == "['log.txt', 'new.txt']" and told["renamed"] == "hi"
    assert "traindx verify: writing outside of the copy is refused" in told["raw"]
    assert "traindx verify" in told["kill"]
    assert told["resume"] == "{'a': 1}"
    assert told["resumed"] == told["saved here"] == "{'b': 2}"
    refused = ("raw", "kill", "exclusive", "rmtree of a link")
    failed = {name for name, text in told.items() if "Error" in text} - set(refused)
    assert not failed, {name: told[name] for name in failed}
    assert f"{other}/logs/log.txt" in rerun.redirected
    assert f"{other}/child.txt" in rerun.redirected
    assert any("refused writing" in note for note in rerun.notes)


def test_a_project_installed_in_place_is_imported_from_the_copy(tmp_path: Path) -> None:
    package = tmp_path / "project" / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 1\n")
    script = f"import sys\nsys.path.append({str(package.parent)!r})\nimport package\nprint(package.VALUE)\n"
    (package.parent.parent / "train.py").write_text(script)
    name = "src/package/__init__.py"
    patch = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-VALUE = 1\n+VALUE = 2\n"
    rerun, output = rerun_once(tmp_path / "project", "train.py", change=Change(patch=patch))
    assert (rerun.exit_code, output) == (0, "2\n")
