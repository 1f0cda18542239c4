"""Why a rerun of the command as it is says nothing about the original."""

from __future__ import annotations

from traindx.experiments.verification.hindrances import why_not
from traindx.experiments.verification.observed_rerun import Observation, crash_of
from traindx.model.run import Run

LONGEST = 160


def why_not_reproduced(control: Observation, original: Run) -> str:
    """Return why a rerun did not get as far as the original; empty if it did."""
    hindrance = why_not(control.rerun, original)
    if hindrance:
        return f"the command cannot be rerun here: {hindrance}"
    crash, before = control.crash, crash_of(original)
    if crash is None or (before is not None and before.type == crash.type):
        return ""
    message = f": {crash.message.splitlines()[0][:LONGEST]}" if crash.message else ""
    return f"the rerun fails otherwise than the original did ({crash.words}{message})"
