"""The recorder: runs inside the training process, sees each step, and writes a recording.

It imports the standard library and torch and nothing else, so that it works in any environment that
can train. It never raises into the training, never draws a random number and never changes a value.
"""

from __future__ import annotations

import os

from .session import Session

__all__ = ["Session", "ride_along", "start"]

DEFAULT_OVERHEAD = 0.02


def ride_along() -> Session | None:
    """Record this process as the environment asks for; called once torch is imported."""
    folder = os.environ.get("TRAINDX_RECORDING")
    if not folder:
        return None
    hang_after = os.environ.get("TRAINDX_HANG_AFTER")
    return start(
        folder,
        overhead=float(os.environ.get("TRAINDX_OVERHEAD") or DEFAULT_OVERHEAD),
        hang_after_s=float(hang_after) if hang_after else None,
    )


def start(
    folder: str, *, overhead: float = DEFAULT_OVERHEAD, hang_after_s: float | None = None
) -> Session:
    """Install the hooks, and write to a folder from the first backward pass on."""
    from . import crash
    from .hooks import Hooks

    session = Session(folder, overhead=overhead, hang_after_s=hang_after_s)
    session.hooks = Hooks(session)
    session.hooks.install()
    os.makedirs(session.folder, exist_ok=True)
    crash.enable(session.folder)
    return session
