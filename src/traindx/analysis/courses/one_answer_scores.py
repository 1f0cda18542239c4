"""Scores of a model that gives all inputs one answer, read off the scores alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx.analysis.courses.course import constant_share
from traindx.analysis.courses.references import averages_of_one_answer, shares_of_one_answer
from traindx.analysis.metrics.scores import as_shares
from traindx.model.run import Floats, Run, Series

PHASES = ("val", "test", "train")
LAST = 3  # evaluations to the end that must all say so
PAIR = 2  # of them are enough where the accuracy is that of a guess as well
BALANCED = 0.05  # of 1/C: classes of one size
NEARLY_ALL, MANY = 0.94, 15  # evaluations with one value: an answer that changes once is no change
WORST = 0.97  # an error rate of one: nothing is right


@dataclass(frozen=True, slots=True)
class OneAnswer:
    """The score that says so, and why it does."""

    score: Series
    why: str


def one_answer(run: Run) -> OneAnswer | None:
    """Return what shows that all inputs get one class, if the scores of some phase do."""
    for phase in PHASES:
        found = _by_recalls(run, phase) or _by_f1(run, phase)
        if found is not None:
            return found
    return None


def _by_recalls(run: Run, phase: str) -> OneAnswer | None:
    """One class is always found, and all others never."""
    for kind in ("recall", "accuracy"):
        held = [s.finite() for s in run.matching(f"{kind}/{phase}/*") if _is_of_class(s)]
        if len(held) < 2 or len({len(s) for s in held}) > 1 or len(held[0]) < LAST:
            continue
        table = np.array([as_shares(s)[-LAST:] for s in held])
        if all(shares_of_one_answer(column) for column in table.T):
            all_of = held[int(np.argmax(table[:, -1]))]
            why = f"{all_of.origin.name} is 1 and that of every other class 0"
            return OneAnswer(all_of, f"{why} in the last {LAST} evaluations")
    return None


def _is_of_class(series: Series) -> bool:
    return "class" in series.origin.name.lower() or "/class" in series.name


def _by_f1(run: Run, phase: str) -> OneAnswer | None:
    """Accuracy and F1 are tied to each other as one answer for all ties them."""
    accuracy, f1 = run.get(f"accuracy/{phase}"), run.get(f"f1/{phase}")
    if accuracy is None or f1 is None or len(accuracy.finite()) != len(f1.finite()):
        return None
    shares, scores = as_shares(accuracy.finite())[-LAST:], as_shares(f1.finite())[-LAST:]
    level = float(shares.mean()) if len(shares) else 1.0
    classes = round(1.0 / max(level, 1e-3))
    is_balanced = abs(level * classes - 1.0) < BALANCED
    is_still = len(shares) >= LAST and float(np.ptp(shares)) < 1e-3
    if level > 0.98 or not (is_still or (is_balanced and len(shares) >= PAIR)):
        return None
    means = averages_of_one_answer(shares, scores, 0 if is_still else classes)
    if not means or (is_still and not is_balanced and means[0].startswith("averaged")):
        return None
    why = f"an accuracy of {level:.4g} with an F1 of {float(scores[-1]):.4g} ({means[0]})"
    return OneAnswer(f1.finite(), f"{why} is what one answer for all inputs gives")


def stuck_score(run: Run) -> Series | None:
    """Return an accuracy that nearly all evaluations agree on, or an error rate of one."""
    for phase in PHASES[:2]:
        for series in (s.finite() for s in run.matching(f"accuracy/{phase}*")):
            is_part = _is_of_class(series)
            if not is_part and len(series) >= MANY and _is_stuck(as_shares(series)):
                return series
        for kind in ("wer", "cer"):
            rate = run.get(f"{kind}/{phase}")
            values = np.empty(0) if rate is None else as_shares(rate.finite())
            if rate is not None and len(values) >= LAST and float(values.min()) >= WORST:
                return rate.finite()
    return None


def _is_stuck(shares: Floats) -> bool:
    values, counts = np.unique(shares, return_counts=True)
    usual = float(values[int(np.argmax(counts))])
    is_told = len(f"{usual:.6f}".rstrip("0")) >= 5  # two decimals repeat by chance
    is_usual = constant_share(shares) >= NEARLY_ALL and float(shares[-1]) == usual
    return is_told and is_usual and 0.0 < usual < 0.9


def same_scores(run: Run, points: int) -> Iterator[tuple[Series, Series]]:
    """Yield scores of training and of held-out data that are the same number at every point."""
    for name in run.series:
        kind, _, rest = name.partition("/")
        if not rest.startswith("train") or kind in ("time", "throughput", "lr", "memory"):
            continue
        train = run.get(name)
        for phase in ("val", "test"):
            held_out = run.get(name.replace("/train", f"/{phase}", 1))
            if train is None or held_out is None:
                continue
            a, b = train.finite().values, held_out.finite().values
            is_same = len(a) == len(b) >= points and bool(np.array_equal(a, b))
            if is_same and len(np.unique(a)) >= points // 2:
                yield train.finite(), held_out.finite()
