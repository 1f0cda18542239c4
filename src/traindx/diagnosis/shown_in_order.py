"""What of a run could be shown to be in order, by names that stand in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log

import numpy as np

from traindx.analysis.metrics.chance import CLASS_COUNTS, VOCABULARIES
from traindx.analysis.metrics.class_counts import held_out_counts, largest_class_share
from traindx.analysis.recordings.observations import processes_of
from traindx.diagnosis.health import is_evaluated, learns
from traindx.model.metric_names import kind_of
from traindx.model.run import Run, Series

WELL_BELOW = 0.9  # of the loss of a constant prediction
WELL_ABOVE = 1.2  # times what the constant prediction scores
FIRST_NEAR = 0.3  # of ln C, within which a cross-entropy begins that is told to be one


def shown_in_order(run: Run) -> tuple[str, ...]:
    """Return the names of what was seen to be in order."""
    return tuple(name for name, is_shown in CHECKS.items() if is_shown(run))


def _is_below_constant(run: Run) -> bool:
    """A loss begins where a constant prediction leaves it, and ends well below."""
    loss, classes = run.objective(), _classes(run)
    if any(len(s.finite()) and _end(s) > 1.0 - WELL_BELOW for s in run.matching("r2/val*")):
        return True
    if loss is None or classes < 2 or len(loss.finite()) < 2:
        return False
    values, guess = loss.finite().values, log(classes)
    is_cross_entropy = abs(float(values[0]) - guess) < FIRST_NEAR * guess
    return is_cross_entropy and _end(loss) < WELL_BELOW * guess


def _is_above_chance(run: Run) -> bool:
    """A held-out accuracy ends well above the largest class, or an even guess."""
    counts, classes = held_out_counts(run), _classes(run)
    share = largest_class_share(counts) if counts is not None else 0.0
    level = max(share, 1.0 / classes if classes > 1 else 0.0)
    scores = [s for p in ("val", "test") for s in run.matching(f"accuracy/{p}*")]
    if not level or not scores or not all(len(s.finite()) for s in scores):
        return False
    return all(_share(s) > min(WELL_ABOVE * level, (1.0 + level) / 2) for s in scores)


def _have_moved(run: Run) -> bool:
    """Every parameter that was looked at moved in some step."""
    told: dict[str, bool] = {}
    for process in processes_of(run):
        for sample in process.samples:
            for name, has_moved in zip(sample.names, sample.has_moved, strict=False):
                if has_moved is not None:
                    told[name] = told.get(name, False) or has_moved
    return bool(told) and all(told.values())


def _is_evaluated_in_eval_mode(run: Run) -> bool:
    passes = [e for p in processes_of(run) for e in p.evaluations]
    return bool(passes) and not any(e.is_training for e in passes)


def _classes(run: Run) -> int:
    counted = run.config.number(*CLASS_COUNTS, *VOCABULARIES)
    samples = (s for p in processes_of(run) for s in p.samples)
    seen = {entered.classes for s in samples for entered in s.losses if entered.classes > 1}
    return int(counted) if counted and counted >= 2 else seen.pop() if len(seen) == 1 else 0


def _end(series: Series) -> float:
    values = series.finite().values
    return float(np.median(values[-max(1, len(values) // 5) :]))


def _share(series: Series) -> float:
    return _end(series) / (100.0 if float(series.finite().values.max(initial=0.0)) > 1.5 else 1.0)


def _is_finite(run: Run) -> bool:
    losses = [s for n, s in run.series.items() if kind_of(n) == "loss"]
    return bool(losses) and all(bool(np.isfinite(s.values).all()) for s in losses)


CHECKS: Mapping[str, Callable[[Run], bool]] = {
    "metric-improves": learns,
    "loss-finite": _is_finite,
    "loss-below-constant": _is_below_constant,
    "metric-above-chance": _is_above_chance,
    "parameters-moved": _have_moved,
    "held-out-evaluated": is_evaluated,
    "evaluated-in-eval-mode": _is_evaluated_in_eval_mode,
}
