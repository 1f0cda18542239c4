"""Why a rerun did not come as far as the original: what a copy, or a machine, cannot give it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from traindx.experiments.changes import Rerun
from traindx.experiments.interventions.guard.mirror import SIGN
from traindx.model.run import Failure, Run
from traindx.tracebacks import parse_failures

TAIL_BYTES = 256 << 10
LONGEST = 200
_PORT = re.compile(r"address already in use|EADDRINUSE|failed to listen", re.IGNORECASE)
_CLUSTER = re.compile(r"\b(?:SLURM|PBS|LSB|PMI|OMPI)_?\w*|\b(?:RANK|WORLD_SIZE|MASTER_ADDR)\b")
_OFFLINE = re.compile(
    r"ConnectionError|URLError|HTTPError|gaierror|ConnectTimeout|MaxRetryError|OfflineModeIsEnabled"
)
_TERMINAL = re.compile(r"Inappropriate ioctl|not a terminal|EOF when reading", re.IGNORECASE)
_ABSENT = re.compile(r"^(?:.*: )?(?:line \d+: )?(\S+): (?:command )?not found$", re.MULTILINE)


def why_not(rerun: Rerun, run: Run | None = None) -> str | None:
    """Return why a rerun says nothing about the run, or nothing where it does."""
    text = _tail(rerun.folder)
    failures = parse_failures(text, "output.log")
    if rerun.exit_code != 0 and rerun.stopped == "":
        for failure in reversed(failures):
            if run is not None and _was_there(failure, run):
                return None
            for explain in _EXPLANATIONS:
                told = explain(failure)
                if told:
                    return told
    if rerun.first_step_s is not None:
        return None
    return _why_no_step(rerun, run, failures, text)


def _why_no_step(
    rerun: Rerun, run: Run | None, failures: tuple[Failure, ...], text: str
) -> str | None:
    if rerun.stopped == "time":
        return f"{rerun.duration_s:.0f} s passed before the first step; allow more with --max-time"
    if run is not None and not _has_steps(run):
        return None
    absent = _ABSENT.search(text)
    if rerun.exit_code in (126, 127) and absent is not None:
        return f"a program that it starts is not there: {absent[1]}"
    if SIGN in text:
        return _after_sign(text)
    if failures:
        return f"it failed before the first step: {_said(failures[-1])}"
    if rerun.exit_code == 0:
        return "it ended without a training step"
    how = "a signal" if rerun.exit_code is None else f"exit code {rerun.exit_code}"
    return f"it ended with {how} before the first step"


def _was_there(failure: Failure, run: Run) -> bool:
    """Tell whether the original failed the same way: then it is what is to be explained."""
    message = _plain(failure.message)
    same = (f for f in run.failures if _name(f) == _name(failure))
    return any(not message or not f.message or _plain(f.message) == message for f in same)


def _has_steps(run: Run) -> bool:
    processes = run.recording.processes if run.recording is not None else ()
    return not processes or any(p.counts is None or p.counts.steps for p in processes)


def _asks(failure: Failure) -> str:
    is_input = _name(failure) == "EOFError" and _is_from_input(failure)
    if is_input or _TERMINAL.search(failure.message):
        return "it asks for input on the terminal, and in a rerun nobody answers"
    return ""


def _is_from_input(failure: Failure) -> bool:
    """A torn file ends too early as well; only a prompt says so in these words."""
    return "reading a line" in failure.message or not failure.message


def _refused(failure: Failure) -> str:
    return _after_sign(failure.message) if SIGN in failure.message else ""


def _after_sign(text: str) -> str:
    said = text.partition(SIGN)[2].splitlines()[0]
    return f"the guard over the user's files stopped it: {said[:LONGEST]}"


def _missing(failure: Failure) -> str:
    if _name(failure) in ("FileNotFoundError", "NotADirectoryError"):
        return f"data that it reads is not there: {_line(failure.message)}"
    if _name(failure) in ("ModuleNotFoundError", "ImportError"):
        return f"a module is missing: {_line(failure.message)}"
    return ""


def _taken(failure: Failure) -> str:
    if _PORT.search(failure.message):
        return "a port that it needs is in use; is the original still running?"
    if _name(failure).endswith("OutOfMemoryError") or "out of memory" in failure.message:
        return "the memory that it needs is in use; is the original still running?"
    return ""


def _elsewhere(failure: Failure) -> str:
    told = _CLUSTER.search(failure.message)
    if told and (_name(failure) == "KeyError" or "environment variable" in failure.message):
        return f"the environment of a launcher or cluster is missing: {told[0]}"
    if _OFFLINE.search(failure.type):
        return f"the network is not there: {_said(failure)}"
    return ""


_EXPLANATIONS: tuple[Callable[[Failure], str], ...] = (
    _refused, _asks, _missing, _taken, _elsewhere,
)  # fmt: skip


def _name(failure: Failure) -> str:
    return failure.type.rpartition(".")[2]


def _plain(message: str) -> str:
    return re.sub(r"\d+|/\S+", "", message).strip()


def _said(failure: Failure) -> str:
    return f"{_name(failure)}: {_line(failure.message)}" if failure.message else _name(failure)


def _line(message: str) -> str:
    return message.strip().partition("\n")[0][:LONGEST]


def _tail(folder: Path) -> str:
    logs = sorted(folder.glob("output*.log"), key=lambda p: p.stat().st_mtime)
    if not logs:
        return ""
    try:
        with logs[-1].open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
