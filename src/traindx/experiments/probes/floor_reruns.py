"""Two floors that take a rerun: one batch learnt by heart, and labels that say nothing."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.experiments.changes import Change, Intervention
from traindx.experiments.probes.halving import Halving
from traindx.experiments.probes.measurements import FITS, Points
from traindx.experiments.probes.rerun_pool import Job, RerunPool
from traindx.model.metric_names import kind_of
from traindx.model.trials import number

STEPS = 150  # on one batch
FITTED = 0.2  # of the first loss
STUCK = 0.8
ONE_BATCH = Change("one batch again and again", (Intervention("one-batch"),))
SHUFFLED = Change("labels shuffled", (Intervention("shuffled-labels"),))

Floor = tuple[str, float, str]


def floor_reruns(pool: RerunPool, halving: Halving, metric: str) -> Iterator[Floor]:
    """Yield the floors that reruns show, where there is time for them: name, value, remark."""
    control = halving.control
    part = min(1.0, STEPS / max(1, control.steps))
    jobs = []
    if halving.facts.loaders:
        steps = min(STEPS, control.steps)
        jobs.append(Job(ONE_BATCH, 0, steps, halving.expected_s(part), "one_batch"))
    jobs.append(Job(SHUFFLED, 0, halving.steps, halving.expected_s(), "shuffled_labels"))
    for job, made in pool.see([j for j in jobs if pool.has_time_for(j.expected_s)]).items():
        if made.has_failed or not any(
            made.rerun.applied.get(i.name) for i in job.change.interventions
        ):
            continue
        if job.key == "one_batch":
            yield from _one_batch(made.metrics.get(FITS), made.steps)
        elif metric in made.metrics:
            yield job.key, made.metrics[metric].level, ""


def _one_batch(points: Points | None, steps: int) -> Iterator[Floor]:
    values = points.values if points is not None else ()
    if len(values) < 2 or kind_of(FITS) != "loss" or not values[0] > 0:
        return
    first, last = values[0], values[-1]
    said = f"on one batch the loss goes from {number(first)} to {number(last)} in {steps} steps"
    if last > STUCK * first:
        yield "one_batch", last, f"{said}: what does not learn one batch by heart learns no other"
    else:
        yield "one_batch", last, "" if last < FITTED * first else said
