"""Whether an injected fault matters: measured on the program's own metric, without traindx."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bench.corpus.operators import Ends, Judged
from bench.corpus.program import Mutant, Program
from bench.corpus.runs import Ran

# The spread of a few seeds is a poor estimate where all of them are near perfect.
LEAST_SPREAD = 0.02  # of the metric's own size
WITHIN = 1.0  # healthy spreads from the healthy median: too weak to matter
LOSS_WITHIN = 3.0  # … and so is the last loss, of which one batch is noisier than the metric
BEYOND = 3.0  # clearly worse on the seed that is kept …
BEYOND_DOUBT = 10.0  # so much worse that one more seed is enough
BEYOND_ELSEWHERE = 2.0  # … and worse on the others too
NUMERIC_END = re.compile(r"\b(nan|inf|invalid values?|infinity|overflow)\b", re.IGNORECASE)

SPEEDS = re.compile(r"it/s|s/it|per_second|runtime")
CLOCK = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?([.,]\d+)?|\d+(\.\d+)? ?m?s\b")


class Verdict(Enum):
    MATTERS = "matters"
    TOO_WEAK = "too weak"
    UNCLEAR = "unclear"  # between the two, or not what the operator is meant to do: dropped


def spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return max(max(values) - min(values), LEAST_SPREAD * abs(middle), 1e-9)


@dataclass(frozen=True, slots=True)
class Health:
    """The outcomes of a healthy program over seeds."""

    outcomes: tuple[float, ...]
    is_higher_better: bool
    losses: tuple[float, ...] = ()

    def gap(self, outcome: float) -> float:
        """Return how much worse an outcome is than the healthy median, in healthy spreads."""
        if not math.isfinite(outcome):
            return math.inf
        difference = statistics.median(self.outcomes) - outcome
        return (difference if self.is_higher_better else -difference) / spread(self.outcomes)

    def is_loss_alike(self, loss: float | None) -> bool:
        """Tell whether a last loss is nothing out of the common, where there is one."""
        if loss is None or not self.losses:
            return True
        return loss - statistics.median(self.losses) <= LOSS_WITHIN * spread(self.losses)


def health(program: Program, runs: Sequence[Ran]) -> Health:
    """Return how a healthy program does; it must not crash."""
    outcomes = [r.outcome(program) for r in runs]
    if any(r.crashed for r in runs) or any(o is None or not math.isfinite(o) for o in outcomes):
        raise ValueError(f"{program.name} is not healthy: {outcomes}")
    return Health(
        tuple(o for o in outcomes if o is not None),
        program.is_higher_better,
        tuple(x for r in runs if (x := r.loss(program)) is not None),
    )


def seeds_wanted(mutant: Mutant, healthy: Health, first: Ran) -> int:
    """Return how many more seeds a verdict needs: none where one run decides."""
    operator = mutant.operator
    if operator.ends is Ends.CRASHES or operator.judged is not Judged.BY_OUTCOME:
        return 0
    outcome = None if first.crashed else first.outcome(mutant.program)
    gap = math.inf if outcome is None else healthy.gap(outcome)
    if WITHIN < gap < BEYOND:
        return 0
    return 1 if gap >= BEYOND_DOUBT or operator.cause is None else 2


def judge(mutant: Mutant, healthy: Health, runs: Sequence[Ran], twin: Ran) -> Verdict:
    """Decide about a fault by its runs, the first of which is kept; the twin has no fault."""
    operator = mutant.operator
    if any(r.crashed for r in runs):
        return _judge_crash(mutant, runs)
    if operator.ends is Ends.CRASHES:
        return Verdict.UNCLEAR
    if operator.judged is Judged.ALWAYS:
        return Verdict.MATTERS
    is_same = course(runs[0].log) == course(twin.log)
    if operator.judged is Judged.BY_LOG:
        return Verdict.UNCLEAR if is_same else Verdict.MATTERS
    outcomes = [r.outcome(mutant.program) for r in runs]
    if any(o is None for o in outcomes):
        return Verdict.UNCLEAR
    gaps = [healthy.gap(o) for o in outcomes if o is not None]
    if all(g <= WITHIN for g in gaps):
        if operator.cause is None:
            return Verdict.TOO_WEAK
        is_alike = all(healthy.is_loss_alike(r.loss(mutant.program)) for r in runs)
        return Verdict.TOO_WEAK if is_alike and not is_same else Verdict.UNCLEAR
    if gaps[0] >= BEYOND and all(g >= BEYOND_ELSEWHERE for g in gaps):
        return Verdict.MATTERS
    return Verdict.UNCLEAR


def course(log: str) -> list[str]:
    """Return a log without what differs from run to run: clocks, speeds and progress bars."""
    lines = [x for x in re.split(r"[\r\n]+", log) if not SPEEDS.search(x)]
    return [CLOCK.sub("", x) for x in lines]


def _judge_crash(mutant: Mutant, runs: Sequence[Ran]) -> Verdict:
    """A crash counts where it is meant, or where the numbers went wrong first."""
    if mutant.operator.ends is Ends.CRASHES or mutant.operator.ends is Ends.EITHER:
        return Verdict.MATTERS if runs[0].crashed else Verdict.UNCLEAR
    if mutant.operator.cause is None or any(r.code is None for r in runs):
        return Verdict.UNCLEAR
    is_numeric = all(NUMERIC_END.search(r.log[-1500:]) for r in runs if r.crashed)
    return Verdict.MATTERS if is_numeric and runs[0].crashed else Verdict.UNCLEAR
