"""How many steps a rerun takes: enough to show the symptom, and to get past it."""

from __future__ import annotations

from math import ceil, isfinite

from traindx.experiments.verification.observed_rerun import main_process, steps_in
from traindx.experiments.verification.plans import plan_of
from traindx.experiments.verification.symptoms import Symptom
from traindx.model.run import Run

SHORT_S = 20.0  # an original that took less is rerun whole
ENOUGH = 300  # steps; the detectors that look at late samples need some hundred
PAST_ONSET = 1.5  # times the step at which the symptom began
MARGIN = 50  # steps beyond it
RERUN_SHARE = 0.25  # of the time, for one: a control, a change, and another seed of both
FEWEST = 20  # steps, below which nothing is seen
WHOLE = 0.7  # of the original: then the rest is run too


def steps_for(
    cause: str, symptoms: tuple[Symptom, ...], run: Run, max_steps: int | None = None
) -> int | None:
    """Return after how many steps a rerun is stopped; None if it is to run to its end.

    Enough for the original to have shown its symptom, and for the changed one to get past it.
    """
    total = steps_in(run)
    wanted = _wanted(cause, symptoms, run, total)
    has_ended = _exit_code(run) == 0
    if has_ended and (_duration_s(run) < SHORT_S or wanted >= WHOLE * total):
        wanted = total if total else wanted
        return None if max_steps is None or wanted <= max_steps else max_steps
    if not has_ended and all(s.crash is None for s in symptoms):
        wanted = min(wanted, max(total, ENOUGH))
    return wanted if max_steps is None else min(wanted, max_steps)


def expected_s(run: Run, steps: int | None = None) -> float | None:
    """Return how long a rerun of so many steps takes, going by the original; None if not known."""
    took, total = _duration_s(run), steps_in(run)
    if not isfinite(took) or took <= 0.0:
        return None
    return took * min(1.0, steps / total) if steps is not None and total else took


def affordable_steps(run: Run, left_s: float) -> int | None:
    """Return after how many steps a rerun has to stop to leave time for others; None: no limit."""
    took, total = expected_s(run), steps_in(run)
    if took is None or not total or took <= RERUN_SHARE * left_s:
        return None
    return max(FEWEST, int(total * RERUN_SHARE * left_s / took))


def _wanted(cause: str, symptoms: tuple[Symptom, ...], run: Run, total: int) -> int:
    onsets = [s.onset for s in symptoms if s.onset is not None and isfinite(s.onset)]
    if any(s.crash is not None for s in symptoms):
        onsets.append(float(total))
    wanted = max(ENOUGH, ceil(PAST_ONSET * max(onsets, default=0.0)) + MARGIN)
    process = main_process(run)
    if plan_of(cause).needs_evaluation and process is not None:
        ends = [e.step for e in process.evaluations[:2]]
        wanted = max(wanted, max(ends, default=total) + MARGIN)
    return wanted


def _exit_code(run: Run) -> int | None:
    ending = run.recording.ending if run.recording is not None else None
    return ending.exit_code if ending is not None else None


def _duration_s(run: Run) -> float:
    ending = run.recording.ending if run.recording is not None else None
    took = ending.ended_s - ending.started_s if ending is not None else float("nan")
    return took if isfinite(took) else float("inf")
