"""The loss that a run minimises, where it is finite and long enough to judge."""

from traindx.analysis.curves import curve
from traindx.model.run import Run, Series

RECOVERED = 1.5  # times the loss of guessing: below it by the end, the start has cost little
STALLED = 0.1  # of the starting loss gained at most
JUDGED_POINTS = 20  # of the loss, to judge that


def finite_objective(run: Run, points: int = 1) -> Series | None:
    """Return the finite part of the loss that training lowers, if it has enough points."""
    loss = run.objective()
    return finite_enough(loss, points)


def finite_metric(run: Run, name: str, points: int = 1) -> Series | None:
    """Return the finite part of a series, if it has enough points."""
    return finite_enough(run.get(name), points)


def finite_enough(series: Series | None, points: int) -> Series | None:
    """Return the finite part of a series, if there is one and it has enough points."""
    finite = None if series is None else series.finite()
    return finite if finite is not None and len(finite) >= points else None


def share_gained(run: Run, points: int, *, from_first: bool = False) -> float | None:
    """Return the part of its first level, or of its very first value, that the loss has gained."""
    loss = finite_objective(run, points)
    if loss is None:
        return None
    c = curve(loss.values)
    start = float(loss.values[0]) if from_first else c.start_value
    return (start - c.end_value) / abs(start) if start else None


def stands_still(run: Run, points: int, least: float) -> bool:
    """Tell whether the loss neither gains nor loses that part of its first level."""
    loss = finite_objective(run, points)
    return loss is not None and abs(curve(loss.values).gained) < least


def stays_above(run: Run, guess: float) -> bool:
    """Tell whether the loss ends above a level by half of it or more."""
    loss = run.main_loss()
    if loss is None or not len(loss.finite()):
        return False
    return float(loss.finite().values[-5:].min()) > RECOVERED * guess


def does_not_fall(run: Run) -> bool:
    """Tell whether the loss gains next to nothing."""
    loss = finite_objective(run, JUDGED_POINTS)
    if loss is None:
        return False
    c = curve(loss.values)
    return c.net_improvement <= 0 or c.start_value - c.end_value < STALLED * abs(c.start_value)
