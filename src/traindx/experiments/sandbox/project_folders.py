"""Which folders make up the project of a command: what is copied before it is rerun."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from traindx.errors import CannotRerun

TEMPORARY = ("/tmp", "/var/tmp")
_SCRIPTS = (".py", ".sh", ".bash", ".zsh", ".ipynb")


def scripts_of(command: Sequence[str], cwd: Path) -> tuple[Path, ...]:
    """Return the files of a command that are programs of the user's, where they really are."""
    found = []
    for i, word in enumerate(command):
        is_program = word.endswith(_SCRIPTS) or (i == 0 and os.sep in word)
        path = cwd / word
        if is_program and path.is_file() and not _is_installed(path):
            found.append(path.resolve())
    return tuple(dict.fromkeys(found))


def roots_of(command: Sequence[str], cwd: Path) -> tuple[Path, ...]:
    """Return the folders of the project, none of them inside another: of the scripts, and of cwd.

    The home folder, a temporary folder or `/` is a root only where a script lies right in it.
    """
    if not cwd.is_dir():
        raise CannotRerun(f"{cwd}: the working folder does not exist any more")
    here = cwd.resolve()
    wanted = [_project_of(script.parent) for script in scripts_of(command, cwd)]
    if not is_shared(here):
        wanted.append(_project_of(here))
    roots = sorted(set(wanted) or {here})
    return tuple(r for r in roots if not any(o != r and _holds(o, r) for o in roots))


def is_shared(folder: Path) -> bool:
    """Tell whether a folder holds much more than one project."""
    home = _home()
    temporary = {Path(p).resolve() for p in (tempfile.gettempdir(), *TEMPORARY)}
    return folder in temporary or folder == Path(folder.anchor) or folder in (home, *home.parents)


def _holds(outer: Path, inner: Path) -> bool:
    """Only the top of a shared folder is copied, so it holds no other root."""
    return outer in inner.parents and not is_shared(outer)


def _project_of(folder: Path) -> Path:
    for above in _upwards(folder):
        if (above / ".git").exists():
            return above
    return folder


def _upwards(folder: Path) -> Iterator[Path]:
    for above in (folder, *folder.parents):
        if is_shared(above):
            return
        yield above


def _is_installed(path: Path) -> bool:
    """Tell whether a program belongs to an environment: `…/bin/python`, `…/bin/torchrun`."""
    folder = path.parent
    is_in_bin = folder.name in ("bin", "Scripts")
    return is_in_bin and (
        (folder.parent / "pyvenv.cfg").exists()
        or (folder.parent / "conda-meta").exists()
        or path.suffix not in _SCRIPTS
    )


def _home() -> Path:
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return Path("/")
