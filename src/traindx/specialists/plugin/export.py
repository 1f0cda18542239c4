"""Writing the files of a plugin into a folder, and never over something else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from traindx.errors import UsageError

SHOWN = 3


def write_files(folder: Path, files: Mapping[str, str], *, force: bool = False) -> None:
    """Write texts below a folder; one that holds other files is left alone unless forced."""
    if not force:
        _refuse_others(folder, files)
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        why = f"{folder}: cannot write there: {error.strerror}"
        raise UsageError(f"{why}. Try: another folder") from error


def _refuse_others(folder: Path, files: Mapping[str, str]) -> None:
    if not folder.is_dir():
        return
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())
    others = sorted(name for name in found if name not in files)
    if others:
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        shown = ", ".join(others[:SHOWN])
        raise UsageError(
            f"{folder}: it holds other files ({shown}{more}). Try: a new folder, or --force"
        )
