"""The files of a recording, by their names and by how they begin."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

RUN_FILE = "run.json"
RANK_FILE = re.compile(r"rank(\d{1,9})-(\d{1,12})\.jsonl")
OUTPUT_FILE = re.compile(r"output(?:\.\d{1,6})?\.log")
STACK_FILE = re.compile(r"\d{1,12}\.stack")
SOURCES = "sources"
INCIDENTS = "incidents"
_HEAD = re.compile(rb'\s*\{\s*"k"\s*:\s*"(run|process)"\s*,')
HEAD_BYTES = 256


def kind_of_head(head: bytes) -> str:
    """Return what a file of a recording is by its first bytes: run, process, or nothing."""
    match = _HEAD.match(head)
    return match[1].decode() if match else ""


def is_run_file(path: Path) -> bool:
    """Tell whether a file says how a recorded command ended."""
    if path.name != RUN_FILE or not path.is_file():  # a pipe of that name would be waited for
        return False
    try:
        with path.open("rb") as file:
            return kind_of_head(file.read(HEAD_BYTES)) == "run"
    except OSError:
        return False


def spoken_for(folder: Path, names: Collection[str]) -> frozenset[str]:
    """Return what in a folder belongs to a recording and is read together with its main file.

    The file of the command stands for those of the processes; without it, each is read by itself.
    """
    has_run = RUN_FILE in names and is_run_file(folder / RUN_FILE)
    ranks = {name for name in names if RANK_FILE.fullmatch(name)}
    if not has_run and not ranks:
        return frozenset()
    stacks = {name for name in names if STACK_FILE.fullmatch(name)}
    return frozenset({SOURCES, INCIDENTS} | stacks | (ranks if has_run else set()))


def is_output(name: str) -> bool:
    """Tell whether a file of a recording is what the command printed."""
    return OUTPUT_FILE.fullmatch(name) is not None


def are_parts_of_one_output(first: str, second: str) -> bool:
    """Tell whether two files are segments of what one command printed."""
    a, b = Path(first), Path(second)
    return a.parent == b.parent and all(OUTPUT_FILE.fullmatch(p.name) for p in (a, b))
