"""The copy of a project: what is copied, what is linked, what is left out, and where paths lead."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from traindx.errors import CannotRerun, PatchFailed
from traindx.experiments.sandbox import project_folders, shadow
from traindx.experiments.sandbox.shadow import Shadow, apply_patch

RECORDED = '{"k": "run", "v": 1, "command": []}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "work" / "project"
    for folder in ("package", "data", ".venv/bin", "__pycache__", "traindx-runs/1", "kept", ".git"):
        (root / folder).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "train.py").write_text("lr = 1\n")
    (root / "package" / "model.py").write_text("x = 1\n")
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr\n")
    (root / "kept" / "run.json").write_text(RECORDED)
    (root / "inner").symlink_to("package")
    (root / "outer").symlink_to(tmp_path / "work" / "beside")
    (tmp_path / "work" / "beside").mkdir()
    (tmp_path / "work" / "beside" / "x.txt").write_text("beside")
    return root


def copied(root: Path, tmp_path: Path, **options: float) -> tuple[Shadow, Path]:
    made = Shadow(tmp_path / "0", (root,), root, **options)  # type: ignore[arg-type]
    made.make()
    made.spread(tmp_path / "1")
    return made, tmp_path / "1"


def test_small_files_are_copied_and_large_ones_linked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "MOST_FILE_BYTES", 100)
    monkeypatch.setattr(shadow, "MOST_ENTRIES", 5)
    (project / "data" / "large.bin").write_bytes(b"x" * 101)
    (project / "many").mkdir()
    for i in range(6):
        (project / "many" / f"{i}.txt").touch()
    _, base = copied(project, tmp_path)
    copy = Shadow.at(base, project)
    assert not (copy / "train.py").is_symlink() and (copy / "train.py").read_text() == "lr = 1\n"
    assert (copy / "data" / "large.bin").readlink() == project / "data" / "large.bin"
    assert (copy / "many").readlink() == project / "many"
    assert (copy / ".venv").readlink() == project / ".venv"
    assert (copy / "inner").resolve() == copy.resolve() / "package"
    assert (copy / "outer" / "x.txt").read_text() == "beside"
    assert (copy / ".." / "beside" / "x.txt").read_text() == "beside"
    for name in ("__pycache__", "traindx-runs", "kept"):
        assert not (copy / name).exists()


def test_what_the_run_wrote_is_left_out(project: Path, tmp_path: Path) -> None:
    for name in ("old.pt", "new.pt", "runs/events.out.tfevents.1", "runs/1/x.json", "later.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
        os.utime(project / name, (2000, 2000))
    (project / "data" / "x.csv").touch()
    for name in ("old.pt", "data/x.csv"):
        os.utime(project / name, (500, 500))
    made, base = copied(project, tmp_path, written_since_s=1000.0)
    copy = Shadow.at(base, project)
    assert (copy / "old.pt").exists() and (copy / "later.py").exists()
    assert not (copy / "new.pt").exists() and not (copy / "runs").exists()
    assert {Path(p).name for p in made.hidden} == {"new.pt", "runs"}


def test_paths_in_words_lead_to_the_copy(project: Path, tmp_path: Path) -> None:
    made, base = copied(project, tmp_path)
    copy = Shadow.at(base, project)
    assert made.rewrite(f"--out={project}/out", base) == f"--out={copy}/out"
    assert made.rewrite(f"cd {project} && ls", base) == f"cd {copy} && ls"
    for same in (f"{project}-2/x", f"{project}/.venv/bin/python", "train.py", f"/mnt{project}"):
        assert made.rewrite(same, base) == same


def test_a_patch_finds_its_file_from_any_folder(project: Path, tmp_path: Path) -> None:
    made, base = copied(project, tmp_path)
    body = "@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    for name in ("package/model.py", str(project / "package/model.py")[1:], "model.py"):
        shutil.rmtree(base)
        made.spread(base)
        apply_patch(f"--- a/{name}\n+++ b/{name}\n{body}", made, base)
        assert (Shadow.at(base, project) / "package" / "model.py").read_text() == "x = 2\n"
    assert (project / "package" / "model.py").read_text() == "x = 1\n"
    with pytest.raises(PatchFailed, match="not in the project"):
        apply_patch(f"--- a/no.py\n+++ b/no.py\n{body}", made, base)


def test_a_patch_never_goes_through_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "work" / "beside" / "m.py").write_text("x = 1\n")
    made, base = copied(project, tmp_path)
    (Shadow.at(base, project) / "package").rename(tmp_path / "aside")
    (Shadow.at(base, project) / "package").symlink_to(project / "package")
    name = "package/model.py"
    apply_patch(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n", made, base)
    assert (project / "package" / "model.py").read_text() == "x = 1\n"
    assert (Shadow.at(base, project) / name).read_text() == "x = 2\n"


def test_the_root_is_the_repository_or_the_folder_of_the_script(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = project / "package"
    assert project_folders.roots_of(["python", "model.py"], inner) == (project,)
    shutil.rmtree(project / ".git")
    assert project_folders.roots_of(["python", "model.py"], inner) == (inner,)
    assert project_folders.roots_of(["python", "package/model.py"], project) == (project,)
    monkeypatch.setenv("HOME", str(project))
    assert project_folders.roots_of(["python", "package/model.py"], project) == (inner,)
    assert project_folders.roots_of(["python", "train.py"], project) == (project,)  # its top only
    with pytest.raises(CannotRerun):
        project_folders.roots_of(["python", "x.py"], tmp_path / "gone")


def test_git_answers_in_the_copy_and_writes_only_there(project: Path, tmp_path: Path) -> None:
    shutil.rmtree(project / ".git")
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "train.py"], [*identity, "commit", "-qm", "m"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True
    ).stdout
    before = sorted(p for p in (project / ".git").rglob("*"))
    _, base = copied(project, tmp_path)
    copy = Shadow.at(base, project)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=copy, check=True, capture_output=True)
    assert head.stdout == told
    (copy / "train.py").write_text("lr = 2\n")
    subprocess.run(["git", *identity, "commit", "-qam", "n"], cwd=copy, check=True)
    assert sorted(p for p in (project / ".git").rglob("*")) == before
