"""What to probe and within which bounds: one request, from the caller down."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The bounds of a probing; None leaves it to the run."""

    symptoms: tuple[str, ...] = ()
    max_time_s: float = 300.0
    max_steps: int | None = None
    seeds: int | None = None
    keep: str | os.PathLike[str] | None = None  # where the first run on a copy is kept
