"""What speaks against a clean bill, as figures of the metrics that count.

No figure names a fault: they say how little was gained, how far held-out data are behind, and how
far the end is from the best. What they weigh was fitted on labelled runs of strangers by
`python -m bench.curve_weights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

import numpy as np

from traindx.analysis.courses import fitted_weights
from traindx.analysis.courses.course import MetricCourse, course_of
from traindx.analysis.courses.held_out import FEWEST, pairs_of
from traindx.analysis.courses.main_metrics import (
    AT_THE_FLOOR,
    course_of_series,
    held_out_metrics,
    main_metrics,
)
from traindx.analysis.metrics.scores import as_shares
from traindx.model.metric_names import kind_of
from traindx.model.run import Run, Series

LIKELY = 0.5  # of runs with such figures are in trouble: no clean bill
SHARES = frozenset({"accuracy", "f1", "auc", "dice"})
RISEN = 0.3  # of its size, that a training loss ends above its best; more says no more
CERTAIN = 0.9  # a share of right answers that leaves no doubt
TOLD = {
    "small_gain": "the metrics that count hardly improve",
    "behind": "held-out loss is far above that of training",
    "rise": "the held-out loss ends above its lowest level",
    "few_right": "few held-out answers are right",
    "training_from_best": "the training loss ends above its best",
    "huge": "the loss is in the units of raw targets",
}


def doubts(run: Run) -> Mapping[str, float]:
    """Return what speaks against a clean bill, each from 0 to about 1."""
    held_out = [s for s in held_out_metrics(run) if len(s) >= FEWEST]
    gains = [_gain(course_of_series(s)) for s in main_metrics(run) if len(s) >= FEWEST]
    loss = run.objective()
    told = loss.finite().values if loss is not None else np.empty(0)
    own = course_of(told) if len(told) else None
    right = [_last_share(s) for s in held_out if kind_of(s.name) in SHARES]
    pairs = [p for p in pairs_of(run) if not _is_at_the_floor(p.val_course)]
    behind = [_ratio(p.val_course.end, p.train_course.end) / 2 for p in pairs]
    rises = [_ratio(p.val_course.end, p.val_course.best) for p in pairs]
    is_done = max(right, default=0.0) >= CERTAIN  # fine-tuning may begin where little is left
    return {
        "small_gain": 0.0 if is_done else max(0.0, 1.0 - 4.0 * max(gains, default=0.25)),
        "behind": min(1.0, max(behind, default=0.0)),
        "rise": min(1.0, max(rises, default=0.0)),
        "few_right": max(0.0, CERTAIN - max(right, default=CERTAIN)),
        "training_from_best": min(RISEN, own.regret) if own is not None else 0.0,
        "huge": _hugeness(own.end) if own is not None else 0.0,
    }


def probability_of_trouble(figures: Mapping[str, float]) -> float:
    """Return how likely readers of runs with such figures find a fault."""
    table = fitted_weights.TROUBLE
    total = table["constant"] + sum(table[name] * value for name, value in figures.items())
    return 1.0 / (1.0 + exp(-total))


def gravest(figures: Mapping[str, float]) -> str:
    """Say which figure speaks most against a clean bill."""
    return TOLD[max(figures, key=lambda name: fitted_weights.TROUBLE[name] * figures[name])]


def _gain(course: MetricCourse) -> float:
    """Return what a metric gains of its size, up to one."""
    return float(np.clip(course.gain, 0.0, 1.0)) if course.sure_gain > 1.0 else 0.0


def _is_at_the_floor(course: MetricCourse) -> bool:
    return course.end < AT_THE_FLOOR * course.start


def _last_share(score: Series) -> float:
    return float(as_shares(score)[-max(1, len(score) // 8) :].mean())


def _hugeness(level: float) -> float:
    """Return how far a loss is beyond a thousand, on the scale of the logarithm."""
    return float(np.clip((log(max(abs(level), 1e-9)) / log(10) - 3.0) / 3, 0.0, 1.0))


def _ratio(high: float, low: float) -> float:
    return max(0.0, log(high / low)) if high > 0.0 and low > 0.0 else 0.0
