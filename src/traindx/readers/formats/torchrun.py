"""Logs of torchrun by rank: `<run>/attempt_0/<rank>/stdout.log`, `stderr.log`, `error.json`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from traindx.errors import UnreadableArtifact
from traindx.model.run import Failure, Run, as_number
from traindx.readers.formats.console.reader import read as read_console
from traindx.readers.json_text import load
from traindx.readers.text import damage, read_text
from traindx.registry import reader
from traindx.tracebacks import parse_failures

MAX_BYTES = 8 << 20
MAX_RANK = 10**6
_ATTEMPT = re.compile(r"attempt_\d+")
_LOGS = frozenset({"stdout.log", "stderr.log"})
_MESSAGE = re.compile(
    r"([A-Za-z_][\w.]*)\s*:\s*(.*)|([A-Za-z_][\w.]*(?:Error|Exception|Exit)\w*)", re.S
)


def sniff(path: Path, head: bytes) -> float:
    """Recognise the files by the folders that torchrun makes, and by what they say."""
    if path.name == "error.json" and b'"py_callstack"' in head:
        return 0.98
    is_ranked = path.name in _LOGS and rank_of(path) is not None
    return 0.95 if is_ranked and head.strip() else 0.0


def rank_of(path: Path) -> int | None:
    """Return the rank that the folder of a file stands for."""
    parts = path.absolute().parts
    if len(parts) < 3 or _ATTEMPT.fullmatch(parts[-3]) is None:
        return None
    return int(parts[-2]) if parts[-2].isdecimal() and int(parts[-2][:9]) < MAX_RANK else None


@reader("torchrun", sniff)
def read(path: Path) -> Run:
    """Read what one rank printed, or the exception that ended it."""
    if path.name == "error.json":
        return _read_error(path)
    run = read_console(path)
    rank = rank_of(path)
    return replace(
        run,
        series={
            own: replace(series, name=own)
            for name, series in run.series.items()
            for own in [f"ranks/{rank}/{name}" if rank and not _is_ranked(name) else name]
        },
        failures=tuple(replace(f, rank=rank if f.rank is None else f.rank) for f in run.failures),
        artifacts=tuple(replace(a, reader="torchrun") for a in run.artifacts),
    )


def _is_ranked(name: str) -> bool:
    return name.startswith("ranks/")


def _read_error(path: Path) -> Run:
    text, was_cut = read_text(path, MAX_BYTES)
    message = _mapping(load(text)).get("message")
    if message is None:
        why = "it was cut off" if was_cut or not text.rstrip().endswith("}") else "it is no error"
        raise UnreadableArtifact(str(path), f"{why} of torchrun", "the logs of the ranks beside it")
    extra = _mapping(_mapping(message).get("extraInfo"))
    said = str(_mapping(message).get("message", message))
    traceback = str(extra.get("py_callstack") or "")
    rank = rank_of(path)
    time_s = as_number(extra.get("timestamp"))
    found = parse_failures(traceback, str(path)) or (_bare(said, path),)
    artifact, events = damage(path, "torchrun", ())
    failures = tuple(replace(f, rank=rank, time_s=time_s, locator="py_callstack") for f in found)
    return Run(name=path.stem, failures=failures, artifacts=(artifact,), events=events)


def _bare(said: str, path: Path) -> Failure:
    """An error without a stack: a signal, or an exception in the launcher."""
    match = _MESSAGE.fullmatch(said.strip())
    if match is None:
        return Failure("", said.strip()[:2000], str(path))
    return Failure(match[1] or match[3], (match[2] or "")[:2000], str(path))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
