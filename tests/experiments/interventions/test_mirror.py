"""A mirror shows what is there, and takes what is written, without a trace in the original."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.experiments.interventions.guard import mirror as mirrors
from traindx.experiments.interventions.guard.mirror import Mirror


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "x.txt").write_text("x")
    (folder / "a" / "b" / "y.txt").write_text("y")
    return folder


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    (tmp_path / "mirror").mkdir()
    return Mirror(str(tmp_path / "mirror"), [str(tmp_path / "allowed")])


def test_nothing_is_mapped_before_something_is_written(mirror: Mirror, original: Path) -> None:
    assert mirror.view(str(original / "a")) == str(original / "a")


def test_a_write_unfolds_the_folders_above(mirror: Mirror, original: Path) -> None:
    place = Path(mirror.writable(str(original / "a" / "b" / "y.txt"), keeps=True))
    assert place.read_text() == "y" and not place.is_symlink()
    place.write_text("changed")
    assert (original / "a" / "b" / "y.txt").read_text() == "y"
    assert Path(mirror.view(str(original / "a" / "b" / "y.txt"))).read_text() == "changed"
    assert Path(mirror.view(str(original / "a" / "x.txt"))).read_text() == "x"
    Path(mirror.writable(str(original / "a" / "x.txt"))).unlink()
    assert not Path(mirror.view(str(original / "a" / "x.txt"))).exists()
    assert (original / "a" / "x.txt").exists()


def test_allowed_folders_are_written_also_through_links(
    mirror: Mirror, original: Path, tmp_path: Path
) -> None:
    (tmp_path / "allowed").mkdir()
    (original / "cache").symlink_to(tmp_path / "allowed")
    mirror.writable(str(original / "a" / "new.txt"))
    for path in (tmp_path / "allowed" / "z", original / "cache" / "z"):
        assert mirror.writable(str(path)) == str(tmp_path / "allowed" / "z")


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_folder_that_cannot_be_listed_shines_through(
    mirror: Mirror, original: Path, monkeypatch: pytest.MonkeyPatch, *, is_locked: bool
) -> None:
    listed = os.listdir

    def refuse(folder: str) -> list[str]:
        if folder == str(original):
            raise PermissionError
        return listed(folder)

    if is_locked:
        monkeypatch.setattr(mirrors.os, "listdir", refuse)
    else:
        monkeypatch.setattr(mirrors, "MOST_ENTRIES", 0)
    place = Path(mirror.writable(str(original / "a" / "x.txt"), keeps=True))
    assert place.read_text() == "x" and not place.is_symlink()
    assert Path(mirror.view(str(original / "a" / "b" / "y.txt"))).read_text() == "y"
    new = Path(mirror.writable(str(original / "new.txt"), makes=True))
    new.write_text("new")
    assert Path(mirror.view(str(original / "new.txt"))).read_text() == "new"
    assert sorted(p.name for p in original.rglob("*")) == ["a", "b", "x.txt", "y.txt"]


def test_what_others_made_since_is_seen(mirror: Mirror, original: Path) -> None:
    mirror.writable(str(original / "a" / "new.txt"))
    (original / "later.txt").write_text("later")
    assert not Path(mirror.view(str(original / "later.txt"))).exists()
    mirror.born_s = 0.0
    assert Path(mirror.view(str(original / "later.txt"))).read_text() == "later"


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["write", "append", "remove", "mkdir", "rename", "read"]),
        st.sampled_from(["a", "a/x.txt", "a/b", "a/b/y.txt", "a/new.txt", "a/b/new", "n", "n/m"]),
        st.sampled_from(["a/z", "a/b/z", "n/z", "a/x.txt"]),
    ),
    max_size=8,
)


@given(acts=ACTS)
@settings(deadline=None, max_examples=60)
def test_it_behaves_like_a_copy(
    acts: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any program sees the same as on a folder of its own, and the original stays as it is."""
    home = tmp_path_factory.mktemp("case")
    for name in ("original", "plain"):
        (home / name / "a" / "b").mkdir(parents=True)
        (home / name / "a" / "x.txt").write_text("x")
        (home / name / "a" / "b" / "y.txt").write_text("y")
    (home / "mirror").mkdir()
    mirror = Mirror(str(home / "mirror"), [])
    for act, first, second in acts:
        seen = _act(act, home / "plain" / first, home / "plain" / second, None)
        assert _act(act, home / "original" / first, home / "original" / second, mirror) == seen
    assert (home / "original" / "a" / "x.txt").read_text() == "x"
    assert (home / "original" / "a" / "b" / "y.txt").read_text() == "y"
    assert sorted(p.name for p in (home / "original").rglob("*")) == ["a", "b", "x.txt", "y.txt"]


def _act(act: str, first: Path, second: Path, mirror: Mirror | None) -> object:
    def at(path: Path, *, keeps: bool = False, makes: bool = False) -> Path:
        if mirror is None:
            return path
        return Path(mirror.writable(str(path), keeps=keeps, makes=makes))

    try:
        if act == "write":
            return at(first, makes=True).write_text("w")
        if act == "append":
            with at(first, keeps=True).open("a") as file:
                return file.write("+")
        if act == "remove":
            return at(first).unlink() if not _is_folder(first, mirror) else "a folder"
        if act == "mkdir":
            return at(first).mkdir()
        if act == "rename":
            is_plain = not _is_folder(first, mirror) and not _is_folder(second, mirror)
            return at(first).replace(at(second)) and None if is_plain else "a folder"
        return (first if mirror is None else Path(mirror.view(str(first)))).read_text()
    except OSError as error:
        return type(error)


def _is_folder(path: Path, mirror: Mirror | None) -> bool:
    return (path if mirror is None else Path(mirror.view(str(path)))).is_dir()
