"""`verify`: from a diagnosis to one that is tested, within limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindx.diagnosis import judge
from traindx.errors import CannotRerun
from traindx.evidence import Diagnosis
from traindx.experiments.campaign import Campaign, Progress
from traindx.experiments.laboratory import Bench, Laboratory, OutOfTime
from traindx.experiments.observing import main_process
from traindx.model import Run

HANG_AFTER_S = 20.0  # where the original stood still
NO_TIME = "no time was left to test it"
NOTHING = "nothing to test: the diagnosis has no cause that the run suffers from"
INTERRUPTED = "interrupted before it was tested"


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """A run, its diagnosis with the experiments in it, and what was left undone."""

    run: Run
    diagnosis: Diagnosis
    warnings: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_interrupted: bool = False
    note: str = ""  # why nothing was tested


def verify(
    run: Run,
    diagnosis: Diagnosis,
    workshop: Bench,
    *,
    causes: Sequence[str] = (),
    max_time_s: float = 600.0,
    max_steps: int | None = None,
    seeds: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    progress: Progress = lambda done, total, text: None,
) -> Verification:
    """Test the leading hypotheses of a diagnosis, or the named causes, by rerunning the command.

    Ctrl-C and the end of the time return what is known by then.
    """
    hang_after_s = HANG_AFTER_S if _has_stalled(run) else None
    laboratory = Laboratory(workshop, max_time_s, hang_after_s=hang_after_s, tell=tell)
    campaign = Campaign(run, diagnosis, laboratory, causes, max_steps, seeds, progress)
    left = ""
    try:
        campaign.run_all()
    except OutOfTime:
        left = NO_TIME
    except KeyboardInterrupt:
        left = INTERRUPTED
    except CannotRerun as error:
        for candidate in campaign.waiting:
            campaign.give_up(candidate, f"the command cannot be rerun: {error}")
    unfinished = tuple(f"{c.cause}: {left}" for c in campaign.waiting) if left else ()
    return Verification(
        run,
        judge(diagnosis, campaign.experiments, run),
        tuple(getattr(workshop, "warnings", ())),
        unfinished,
        left == INTERRUPTED,
        "" if campaign.experiments or left else NOTHING,
    )


def _has_stalled(run: Run) -> bool:
    process = main_process(run)
    return process is not None and any(not s.is_over for s in process.stalls)
