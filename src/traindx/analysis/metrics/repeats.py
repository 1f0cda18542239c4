"""Values that a log repeats in every digit."""

from dataclasses import replace

import numpy as np

from traindx.analysis.curves import since
from traindx.model.run import Run, Series

STEPS = 10  # in a row, up to the end
MANY_STEPS = 40  # of which nearly all have one value; the last batch of a pass may be another
NEARLY_ALL = 0.9
ENOUGH_DIGITS = 6  # four printed digits repeat on a plateau; six do not unless nothing moves
REPEATS = 3  # evaluations in a row after the first of their kind
# fewer digits repeat too where nothing moves; from the very first evaluation on, that is no plateau
REPEATS_OF_FEW = {5: 8, 4: 10}
FELL = 0.9  # of its first value: a training loss that was learnt before the weights stood still
MOVED = 1e-3  # of its level: less is what single precision makes of no change
SHARE = 0.3  # of all evaluations; a run that stops right after is only well trained
STANDS = 0.8  # of the run
LEARNT = 0.05  # of the first value; what was gained before the loss stood still


def usual_value(loss: Series) -> Series:
    """Return the points at the one value that nearly all have, from the first on, if there is one.

    Batches differ, so their losses do, unless every input gets the same answer: a triplet loss at
    its margin, a cross-entropy at that of a guess.
    """
    values = loss.values
    if len(values) < MANY_STEPS:
        return loss.take(np.empty(0, dtype=int))
    usual = float(np.median(values))
    same = np.flatnonzero(np.isclose(values, usual, rtol=1e-6, atol=0.0))
    is_one = len(same) >= NEARLY_ALL * len(values) and same[0] == 0 and same[-1] >= len(values) - 2
    if not is_one or len(same) == len(values):  # without an exception it is told above
        return loss.take(np.empty(0, dtype=int))
    return replace(loss.take(same), values=np.full(len(same), usual))


def has_no_gradient(run: Run) -> bool:
    """Tell whether the gradient norm is zero to the end, of which this loss is a mere sign."""
    norm = run.get("grad_norm")
    values = np.empty(0) if norm is None else norm.finite().values[-STEPS:]
    return len(values) > 0 and not bool(values.any())


def by_step(loss: Series) -> Series:
    """Return one point of every step."""
    return loss.take(np.flatnonzero(np.diff(loss.steps, append=np.inf) != 0))


def by_epoch(loss: Series) -> Series | None:
    """Return the last point of every epoch, where the epochs are known."""
    epochs = loss.steps if loss.axis == "epoch" else loss.epochs
    if len(epochs) != len(loss) or not len(loss) or not bool(np.all(np.isfinite(epochs))):
        return None
    whole = np.floor(epochs)
    return loss.take(np.flatnonzero(np.append(np.diff(whole) != 0, True)))


def digits_of(series: Series) -> int:
    """The significant digits with which a series was written."""
    texts = [f"{abs(v):.12e}".split("e")[0].replace(".", "").rstrip("0") for v in series.values]
    return max(map(len, texts), default=0)


def first_repeat(series: Series) -> int | None:
    """The point from which on all values are equal, where that is telling."""
    if len(series) < REPEATS + 1:
        return None
    start = since(series.values == series.last)
    repeated, digits = len(series) - start, _printed_digits(series)
    if digits >= ENOUGH_DIGITS:
        return start if repeated > REPEATS and repeated >= SHARE * len(series) else None
    return start if start == 0 and repeated >= REPEATS_OF_FEW.get(digits, np.inf) else None


def _printed_digits(series: Series) -> int:
    """The significant digits, zeros at the end of what was printed among them."""
    printed = len(f"{abs(series.last):.{series.origin.decimals}f}".replace(".", "").lstrip("0"))
    return max(printed if series.origin.decimals else 0, digits_of(series))


def has_learnt_before(series: Series, start: int) -> bool:
    """Tell whether a loss moved before it stood still, by more than its digits resolve."""
    first, level = float(series.values[0]), float(series.values[start])
    return abs(first - level) > MOVED * abs(level)


def has_loss_fallen(run: Run) -> bool:
    """Tell whether the training loss, which moved at first, then stood as the evaluation does."""
    loss = run.objective()
    if loss is None or len(loss.finite()) < 2 * REPEATS:
        return False
    values = loss.finite().values
    half = values[len(values) // 2 :]
    return float(half.max()) < FELL * float(values[0])


def stands_since(loss: Series, least: int, digits: int) -> int | None:
    """Return the point since which a loss shows one value to so many digits, for most of the run.

    A run that learnt first and then stands still has converged.
    """
    if len(loss) < least or loss.last == 0.0:
        return None
    start = since(loss.values == loss.last)
    first = float(loss.values[0])
    is_learnt = abs(first - loss.last) > LEARNT * abs(first)
    is_short = len(loss) - start < max(least, STANDS * len(loss))
    return None if is_short or is_learnt or digits_of(loss) < digits else start
