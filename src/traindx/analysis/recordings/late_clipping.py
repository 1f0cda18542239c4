"""Gradients that are clipped when they have been used already."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.model.recording import Process, Sample

ENOUGH = 3  # samples
MOST = 0.9  # of the samples


def late_clips(process: Process) -> Sequence[Sample]:
    """Return the samples whose gradients were clipped before backward or after the update.

    Of several optimizers one may step before the gradients of the next one are clipped.
    """
    if len({s.optimizer for s in process.samples}) != 1:
        return ()
    late = [s for s in process.samples if s.late_clip is not None]
    return late if len(late) >= max(ENOUGH, MOST * len(process.samples[1:])) else ()
