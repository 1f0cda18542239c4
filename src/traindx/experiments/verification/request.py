"""What to test by experiment: one request, from the caller down to the loop over hypotheses."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to test and within which bounds; None leaves it to the run."""

    causes: tuple[str, ...] = ()  # tested instead of the leading hypotheses
    symptoms: tuple[str, ...] = ()
    max_time_s: float = 300.0
    max_steps: int | None = None
    seeds: int | None = None
    keep: str | os.PathLike[str] | None = None  # where a first run on a copy is kept
