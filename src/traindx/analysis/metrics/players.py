"""The losses of two networks that train against each other."""

import numpy as np

from traindx.model.run import Run, Series

MAKERS = ("g", "gen", "generator", "netg")
JUDGES = ("d", "disc", "discriminator", "netd", "critic")
WON, BEATEN = 0.05, 4.0  # the loss of a discriminator that is always right, and always fooled
LATE = 10  # epochs, after which a generator that cannot learn has lost long ago


def player_loss(run: Run, names: tuple[str, ...]) -> Series | None:
    """Return the first loss of the given names, as far as it is finite."""
    found = (run.get(f"loss/train/{name}") for name in names)
    return next((s.finite() for s in found if s is not None and len(s.finite())), None)


def is_even_game(run: Run) -> bool:
    """Tell whether a generator and a discriminator train, and neither has won outright."""
    parts = {s.name.split("/")[2]: s.finite() for s in run.matching("loss/train/*")}
    judge = next((parts[n] for n in JUDGES if n in parts), None)
    if judge is None or not len(judge) or not any(n in parts for n in MAKERS):
        return False
    late = float(np.median(judge.values[len(judge) // 2 :]))
    return float(judge.values.min()) < 0 or WON < late < BEATEN


def was_in_balance(judge: Series, first: int) -> bool:
    """Tell whether the log begins late in the run, with a judge that still errs."""
    is_late = judge.axis == "epoch" and float(judge.steps[0]) >= LATE
    return is_late and first > 0 and float(judge.values[:first].max()) > 0.5 * np.log(2)
