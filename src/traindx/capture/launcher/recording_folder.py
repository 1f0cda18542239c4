"""The folder of a recording, and the `run.json` in it that says what ran and how it ended."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from traindx.errors import UsageError

DEFAULT_PARENT = "traindx-runs"
ABOUT = "run.json"
EARLIER = ".earlier"  # hidden, so that a later diagnosis does not read it as part of this run
LONGEST_NAME = 40
# what a recording and its diagnosis are made of; a user's files beside them are left alone
_OWN = (
    ABOUT, "output.log", "output.*.log", "rank*-*.jsonl", "[0-9]*.stack", "sources", "incidents",
    "diagnosis.json", "report.html", "report.md", "report.sarif", "fix.patch", "loss.png",
    "gradients.png", "verification.png", "gradient_analysis.md",
)  # fmt: skip


def make_folder(output: str | None, command: Sequence[str]) -> Path:
    """Make the folder of a new recording, and return its absolute path.

    An earlier recording in a named folder is put aside; one that is still growing is an error.
    """
    if output is None:
        return _make_new(Path.cwd() / DEFAULT_PARENT, command)
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    _put_earlier_aside(folder)
    probe = folder / ".writable"
    probe.touch()
    probe.unlink()
    return folder


def make_spare_folder() -> Path | None:
    """Make a folder for a recording that can be nowhere else."""
    try:
        return Path(tempfile.mkdtemp(prefix="traindx-run-"))
    except OSError:
        return None


def script_name(command: Sequence[str]) -> str:
    """Return the name of what a command trains, or else of the command, fit for a file name."""
    named = next((a for a in command if a.endswith((".py", ".sh", ".ipynb"))), None)
    if named is None and "-m" in command[:-1]:
        named = command[command.index("-m") + 1]
    stem = Path(named or command[0]).name
    stem = re.sub(r"\.(py|sh|ipynb)$", "", stem)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.")[:LONGEST_NAME] or "command"


def write_about(folder: Path, about: Mapping[str, object]) -> None:
    """Write `run.json` in one piece: a reader finds the old or the new one."""
    target = folder / ABOUT
    draft = folder / f".{ABOUT}.{os.getpid()}"
    try:
        draft.write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def shown(path: Path) -> str:
    """Return the shorter of a path's absolute form and the one from the working folder."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except (OSError, ValueError):
        return str(path)


def _make_new(parent: Path, command: Sequence[str]) -> Path:
    if not parent.exists():
        parent.mkdir(parents=True)
        (parent / ".gitignore").write_text("*\n", encoding="utf-8")
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{script_name(command)}"
    for number in count(1):
        folder = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


def _put_earlier_aside(folder: Path) -> None:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        about = {}
    if isinstance(about, dict) and about.get("is_running") and _may_be_alive(about):
        who = f"process {about.get('parent')} on {about.get('host')}"
        raise UsageError(
            f"{folder}: another traindx run is recording there ({who}). Try: another --output"
        )
    aside = folder / EARLIER / time.strftime("%Y%m%d-%H%M%S")
    for number in count(2):
        if not aside.exists():
            break
        aside = aside.with_name(f"{aside.name.partition('.')[0]}.{number}")
    aside.mkdir(parents=True)
    for pattern in _OWN:
        for path in sorted(folder.glob(pattern)):
            path.replace(aside / path.name)


def _may_be_alive(about: Mapping[str, object]) -> bool:
    pid = about.get("parent")
    if about.get("host") != socket.gethostname() or not isinstance(pid, int):
        return about.get("host") != socket.gethostname()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return pid != os.getpid()
