"""Why a command cannot be rerun so that it shows anything."""

from __future__ import annotations

from traindx.experiments.observing import Crash, Observation, crash_of
from traindx.model import Run

_MISSING = ("FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "PermissionError")
_ABSENT = ("ModuleNotFoundError", "ImportError")
_REMOTE = (
    "ConnectionError",
    "URLError",
    "HTTPError",
    "Timeout",
    "gaierror",
    "OfflineModeIsEnabled",
)


def why_not_reproduced(control: Observation, original: Run) -> str:
    """Return why a rerun did not get as far as the original; empty if it did."""
    rerun = control.rerun
    if rerun.stopped == "time" and not control.steps:
        return (
            f"no training step within {rerun.duration_s:.0f} s: it sets up for too long to be "
            "rerun; allow more time"
        )
    if control.crash is not None:
        before = crash_of(original)
        if before is None or before.type != control.crash.type:
            return _why_it_failed(control.crash)
    if rerun.exit_code and not control.steps and control.crash is None:
        return f"the rerun ended with exit code {rerun.exit_code} before it trained"
    return ""


def _why_it_failed(crash: Crash) -> str:
    message = crash.message.splitlines()[0][:160] if crash.message else ""
    told = f"{crash.words}: {message}" if message else crash.words
    if crash.type == "EOFError":
        return f"the program asks for input, and in a rerun nobody answers ({told})"
    if crash.type in _MISSING:
        return f"the rerun does not find what the program reads or may not use it ({told})"
    if crash.type in _ABSENT:
        return f"the rerun misses a module ({told})"
    if crash.type.endswith(_REMOTE):
        return f"the program needs the network ({told})"
    return f"the rerun fails otherwise than the original did ({told})"
