"""How the command ended, in words."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.capture.launcher import memory_pressure, stacks
from traindx.capture.launcher.record_tail import FollowedProcess
from traindx.capture.launcher.recording_folder import shown
from traindx.capture.launcher.signals import name_of

_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"})
_ENOUGH_TO_NAME_S = 120.0


@dataclass(frozen=True, slots=True)
class End:
    """What the parent of a command knows of its end."""

    exit_code: int | None  # None: a signal ended it
    signal: int | None
    started_s: float
    ended_s: float
    peak_bytes: int = 0  # of the largest of its processes
    memory_kills: int | None = None  # that the kernel counted meanwhile on the whole machine
    passed_on: tuple[int, ...] = ()  # signals that came through us

    @property
    def shell_code(self) -> int:
        """The exit code that a shell has for it."""
        return 128 + (self.signal or 0) if self.exit_code is None else self.exit_code


def describe(end: End, folder: Path | None, stalled: Sequence[FollowedProcess]) -> Iterator[str]:
    """Say what happened, a sentence a time; nothing for a command that just ended well."""
    took = _duration(end.ended_s - end.started_s)
    name = name_of(end.signal) if end.signal is not None else ""
    if name == "SIGKILL":
        yield f"the command was killed by SIGKILL after {took}. {_about_memory(end)}"
    elif name == "SIGINT":
        yield f"the command was interrupted (SIGINT) after {took}"
    elif name in _CRASHES:
        yield f"the command crashed with {name} ({_plain(end.signal)}) after {took}"
    elif name:
        sender = ", which was sent to traindx and passed on" if end.signal in end.passed_on else ""
        yield f"the command was ended by {name} after {took}{sender}"
    elif end.exit_code:
        yield f"the command ended with exit code {end.exit_code} after {took}{_hint(end)}"
    is_told = name == "SIGKILL" or end.exit_code == 128 + signal.SIGKILL
    if end.memory_kills and end.exit_code != 0 and not is_told:  # of a process below the command
        often = _times(end.memory_kills)
        yield f"the out-of-memory killer struck on this machine {often} meanwhile"
    if folder is not None:
        yield from _crash_places(folder)
    for followed in stalled if end.exit_code != 0 else ():
        yield _standstill(followed)


def why_unrecorded(command: Sequence[str], *, has_output: bool) -> str:
    """Say why nothing was recorded inside of a command, and what is left to diagnose from."""
    isolated = _isolating(command)
    why = (
        "no process below the command imported torch, "
        "or Python ran with -I or -E or with another PYTHONPATH"
    )
    if isolated is not None:
        why = f"Python was started with {isolated}, which keeps the recorder out"
    then = "; diagnosing from the output" if has_output else ", and it printed nothing"
    return f"nothing was recorded inside ({why}){then}"


def _isolating(command: Sequence[str]) -> str | None:
    """Return the option of Python that makes it ignore the environment, if there is one."""
    names = [word.rpartition("/")[2] for word in command]
    at = next((i for i, name in enumerate(names) if name.startswith("python")), len(names))
    for word in command[at + 1 :]:
        if not word.startswith("-") or word[:2] in ("-c", "-m", "-"):
            return None
        if word[:2] not in ("-W", "-X", "--") and {"I", "E"} & set(word):
            return word
    return None


def _hint(end: End) -> str:
    """Shells and launchers report the signal that ended a process below them as 128 + n."""
    code = end.exit_code or 0
    if not 128 < code < 128 + 65:
        return ""
    try:
        inner = signal.Signals(code - 128)
    except ValueError:
        return ""
    if inner is signal.SIGKILL:
        return f", which stands for SIGKILL. {_about_memory(end)}"
    return f", which stands for {inner.name}"


def _about_memory(end: End) -> str:
    known = []
    if end.memory_kills is None:
        known.append("the out-of-memory killer is the usual sender")
    elif end.memory_kills:
        known.append(
            "the out-of-memory killer is the usual sender, and it struck on this machine"
            f" {_times(end.memory_kills)} meanwhile"
        )
    else:
        known.append(
            "the out-of-memory killer is the usual sender, but the kernel counted no such kill"
            " meanwhile: a scheduler, a memory daemon or a person sent it"
        )
    limit = memory_pressure.available_bytes()
    if end.peak_bytes and limit:
        known.append(
            f"its largest process held {_gigabytes(end.peak_bytes)} of {_gigabytes(limit)}"
        )
    text = "; ".join(known)
    return text[0].upper() + text[1:]


_INSTALLED = ("site-packages", "dist-packages", "/lib/python", "<frozen")


def _crash_places(folder: Path) -> Iterator[str]:
    for crash in stacks.crashes(folder)[:8]:
        place = f" in {_nearer(crash.file)} line {crash.line}, in {crash.function}"
        yield f"process {crash.pid} crashed{place if crash.file else ''}: {crash.error}"


def _standstill(followed: FollowedProcess) -> str:
    stall = followed.stall or {}
    waited = stall.get("waited_s")
    text = f"rank {followed.rank} stood still at step {stall.get('step', '?')}"
    if isinstance(waited, (int, float)):
        text += f" for at least {_duration(float(waited))}"
    place = _innermost(stall.get("stacks"))
    return f"{text}, in {place}" if place else text


def _innermost(found: object) -> str:
    """Return where the first thread of a stall stands, if possible in the user's own code."""
    try:
        places = found[0][1]  # type: ignore[index]
        own = [p for p in places if not any(part in str(p["file"]) for part in _INSTALLED)]
        place = (own or places)[-1]
        return f"{_nearer(str(place['file']))} line {place['line']}"
    except (TypeError, KeyError, IndexError):
        return ""


def _nearer(file: str) -> str:
    path = Path(file)
    return shown(path) if path.is_absolute() else file


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _plain(number: int | None) -> str:
    return (signal.strsignal(number) or "").lower() if number is not None else ""


def _duration(seconds: float) -> str:
    if seconds < _ENOUGH_TO_NAME_S:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"
