"""What is kept when something goes wrong: the exception, the batch, and the replay of a step."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from . import caught, incident_files, places

if TYPE_CHECKING:
    from .session import Session


def record(session: Session, kind: Any, error: Any, traceback: Any, thread: str) -> None:
    """Write down the exception that ends the process or a thread, and keep its batch."""
    said = caught.describe(kind, error, traceback)
    said.update(step=session.steps, time_s=time.time(), thread=thread)
    writer = session.open()
    if not thread:
        extra = {"type": said.get("type"), "message": said.get("message"), "step": session.steps}
        said["kept"] = _keep(session, "exception", extra)
        _reproduce(session, said["kept"], str(said.get("type")))
    writer.write("caught", said, at_once=True)


def replay(session: Session, seen_in: str, loss: torch.Tensor | None) -> None:
    """Replay the step whose loss or gradient is no number, and write down where it began."""
    from . import replay as replays

    frame = places.user_frame(sys._getframe(1))
    said = replays.locate(
        loss,
        seen_in=seen_in,
        batch=session.now.batch,
        forwards=list(session.now.inputs),
        rng_state=session.now.rng_state,
        frame=frame,
    )
    said.update(seen_in=seen_in, step=session.steps)
    said["kept"] = _keep(session, "nonfinite", {k: said[k] for k in ("seen_in", "step")})
    _reproduce(session, said["kept"], "")
    session.open().write("nonfinite", said, at_once=True)


def _keep(session: Session, what: str, extra: dict[str, Any]) -> str:
    name = f"{what}-{os.getpid()}-step{session.steps}"
    now = session.now
    return incident_files.keep(
        session.folder, name, batch=now.given(), rng_state=now.rng_state, extra=extra
    )


def _reproduce(session: Session, kept: str, error_type: str) -> None:
    if not kept or not session.now.inputs:
        return
    try:
        from . import reproduction

        folder = os.path.join(session.folder, kept)
        reproduction.write(folder, session.now.inputs[-1], error_type=error_type)
    except Exception:  # a convenience; the incident itself is written
        return
