"""The copy of a project: small files are copied, large ones and environments are linked."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from traindx.errors import CannotRerun
from traindx.experiments.interventions.guard.mirror import Mirror, is_below
from traindx.experiments.sandbox import applied_patch
from traindx.experiments.sandbox.project_folders import is_shared
from traindx.readers.formats.recording.recording_files import is_run_file

MOST_FILE_BYTES = 16 << 20
MOST_BYTES = 256 << 20
MOST_FILES = 20_000
MOST_ENTRIES = 3000  # a folder with more holds data, unless it holds Python
MOST_SEARCHED = 500

_LEFT_OUT = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".tox",
     ".nox", ".hypothesis", ".hg", ".svn", "traindx-runs"}
)  # fmt: skip
_LINKED = frozenset({"node_modules", "site-packages"})
_SOURCES = (".py", ".pyi", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".ipynb")
_WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".distcp", ".h5")
_OUTPUTS = (*_WEIGHTS, ".log", ".out")
_GIT_STATE = ("HEAD", "index", "packed-refs", "config", "refs", "ORIG_HEAD")


@dataclass(slots=True)
class Shadow:
    """A project as it was when the experiments began, and fresh copies of it.

    The layout is that of a mirror: a path of the project is found below `base` under its own name.
    Checkpoints and output folders of the run that is looked into, which are newer than
    `written_since_s`, are left out: it did not find them either.
    """

    base: Path
    roots: tuple[Path, ...]
    cwd: Path
    written_since_s: float | None = None
    environments: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    _bytes: int = 0
    _files: int = 0

    def make(self) -> None:
        """Copy the project."""
        self.base.mkdir(parents=True)
        mirror = Mirror(str(self.base), ())
        for root in self.roots:
            try:
                place = Path(mirror.writable(str(root)))
                if place.is_symlink():
                    place.unlink()
                self._copy_root(root, place)
            except OSError as error:
                why = error.strerror or error
                raise CannotRerun(f"{root}: the project cannot be copied: {why}") from error
        for name, root in self.names.items():
            place = Path(mirror.writable(name))
            if place.is_symlink():
                place.unlink()
                place.symlink_to(os.path.relpath(self.at(self.base, root), place.parent))
        mirror.writable(str(self.cwd / "x"))

    @property
    def names(self) -> dict[str, Path]:
        """The roots under other names that the working folder has for them."""
        found = {}
        for above in (self.cwd, *self.cwd.parents):
            for root in self.roots:
                if above != root and above.resolve() == root and above.parent.resolve() != root:
                    found[str(above)] = root
        return found

    @staticmethod
    def at(base: Path, path: Path) -> Path:
        """Return where a path is found below a base."""
        return Path(f"{base}{path}")

    def spread(self, base: Path) -> None:
        """Make a fresh copy of the copy."""
        shutil.copytree(self.base, base, symlinks=True)

    def rewrite(self, text: str, base: Path) -> str:
        """Return a text with the paths of the project led to a copy; environments stay."""
        for name in sorted({*map(str, self.roots), *self.names}, key=len, reverse=True):
            if name == os.sep:
                continue
            pattern = rf"(?<![\w./-]){re.escape(name)}(?![\w-])"
            text = re.sub(pattern, lambda m: self._moved(m, base), text)
        return text

    def _moved(self, match: re.Match[str], base: Path) -> str:
        rest = re.split(r"[\s:;,\"']", match.string[match.start() :], maxsplit=1)[0]
        if any(is_below(os.path.normpath(rest), e) for e in self.environments):
            return match[0]
        return f"{base}{match[0]}"

    # copying

    def _copy_root(self, root: Path, place: Path) -> None:
        place.mkdir()
        waiting = deque([(root, place)])
        while waiting:  # breadth first: sources lie near the top, data deep down
            folder, copy = waiting.popleft()
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda e: e.name)
            for entry in entries:
                inner = self._copy_entry(entry, copy / entry.name, root)
                if inner is not None:
                    waiting.append(inner)

    def _copy_entry(
        self, entry: os.DirEntry[str], copy: Path, root: Path
    ) -> tuple[Path, Path] | None:
        path = Path(entry.path)
        if entry.name in _LEFT_OUT or path == self.base.parent:
            return None
        if entry.name == ".git":
            _copy_git(path, copy)
        elif entry.is_symlink():
            _copy_link(path, copy, root)
        elif entry.is_dir(follow_symlinks=False):
            return self._copy_folder(path, copy, is_whole=not is_shared(root))
        elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            self._copy_file(path, copy, entry.stat(follow_symlinks=False))
        return None

    def _copy_folder(self, path: Path, copy: Path, *, is_whole: bool) -> tuple[Path, Path] | None:
        try:
            names = os.listdir(path)  # noqa: PTH208 - names are all that is needed
        except OSError:
            names = []
            is_whole = False
        if "pyvenv.cfg" in names or "conda-meta" in names or path.name in _LINKED:
            self.environments.append(str(path))
            is_whole = False
        if "run.json" in names and is_run_file(path / "run.json"):
            return None
        if is_whole and self._is_output(path, names):
            self.hidden.append(str(path))
            return None
        is_data = len(names) > MOST_ENTRIES and not any(n.endswith(".py") for n in names)
        if not is_whole or is_data or self._files > MOST_FILES:
            copy.symlink_to(path)
            return None
        copy.mkdir()
        return path, copy

    def _copy_file(self, path: Path, copy: Path, about: os.stat_result) -> None:
        if self._is_new(about) and path.suffix in _WEIGHTS:
            self.hidden.append(str(path))
            return
        is_source = path.suffix in _SOURCES and about.st_size <= MOST_FILE_BYTES
        has_room = self._bytes + about.st_size <= MOST_BYTES and self._files < MOST_FILES
        if is_source or (about.st_size <= MOST_FILE_BYTES and has_room):
            try:
                shutil.copy2(path, copy)
            except OSError:  # it cannot be read, or is gone
                with suppress(OSError):
                    copy.unlink(missing_ok=True)
            else:
                self._files += 1
                self._bytes += about.st_size
                return
        copy.symlink_to(path)

    def _is_new(self, about: os.stat_result) -> bool:
        return self.written_since_s is not None and about.st_mtime >= self.written_since_s

    def _is_output(self, path: Path, names: Sequence[str]) -> bool:
        """Tell whether a folder came from the run: all in it is new, and looks like output."""
        if self.written_since_s is None or not self._is_new(path.stat()):
            return False
        seen, is_output = 0, not names
        for folder, _, files in os.walk(path):
            for name in files:
                seen += 1
                about = os.lstat(os.path.join(folder, name))  # noqa: PTH118
                if seen > MOST_SEARCHED or not self._is_new(about) or name.endswith(".py"):
                    return False
                is_output = is_output or name.endswith(_OUTPUTS) or ".tfevents." in name
        return is_output


def apply_patch(patch: str, shadow: Shadow, base: Path) -> tuple[Path, ...]:
    """Apply a diff to a copy and return the changed files; their paths may begin anywhere."""
    mirror = Mirror(str(base), ())

    def find(path: PurePosixPath) -> list[Path]:
        starts = [shadow.cwd, *shadow.roots, Path("/")]
        direct = [Shadow.at(base, start / path) for start in starts]
        found = [p for p in direct if p.is_file() and _is_in(p, base, shadow.roots)]
        return list(dict.fromkeys(found or _ending_with(path, shadow.roots, base)))

    def write(path: Path, data: bytes) -> None:
        Path(mirror.writable(str(path), makes=True)).write_bytes(data)

    return applied_patch.apply(patch, find, write)


def _is_in(path: Path, base: Path, roots: Iterable[Path]) -> bool:
    real = os.path.realpath(path)
    places = [os.path.realpath(Shadow.at(base, root)) for root in roots]
    return any(is_below(real, p) for p in (*places, *map(str, roots)))


def _ending_with(path: PurePosixPath, roots: Iterable[Path], base: Path) -> list[Path]:
    """Return the one file whose path ends so; several would be a guess."""
    found: list[Path] = []
    for root in roots:
        top = Shadow.at(base, root)
        for folder, folders, files in os.walk(top):
            folders[:] = [f for f in folders if not f.startswith(".")]
            if path.name in files:
                candidate = Path(folder, path.name)
                if candidate.parts[-len(path.parts) :] == path.parts:
                    found.append(candidate)
    return found if len(found) == 1 else []


def _copy_link(path: Path, copy: Path, root: Path) -> None:
    target = os.path.realpath(path)
    is_inside = is_below(target, str(root))
    copy.symlink_to(os.path.relpath(target, path.parent) if is_inside else target)


def _copy_git(path: Path, copy: Path) -> None:
    """Copy the state of a repository; its objects are lent, and what is written stays here."""
    try:
        home, common = _git_folders(path)
        copy.mkdir()
        for name in _GIT_STATE:
            for source in (home / name, common / name):
                if source.is_dir():
                    shutil.copytree(source, copy / name, dirs_exist_ok=True)
                elif source.is_file() and not (copy / name).exists():
                    shutil.copy2(source, copy / name)
        (copy / "objects" / "info").mkdir(parents=True)
        lent = f"{common / 'objects'}\n"
        (copy / "objects" / "info" / "alternates").write_text(lent, encoding="utf-8")
    except OSError:  # few programs ask, and those can do without
        shutil.rmtree(copy, ignore_errors=True)


def _git_folders(path: Path) -> tuple[Path, Path]:
    home = path
    if path.is_file():
        told = path.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        home = (path.parent / told).resolve()
    shared = home / "commondir"  # of a working tree beside the main one
    told = shared.read_text(encoding="utf-8").strip() if shared.is_file() else "."
    return home, (home / told).resolve()
