"""The losses of two networks that train against each other."""

import re
from dataclasses import dataclass

import numpy as np

from traindx.analysis.curves import since
from traindx.model.run import Run, Series

MAKERS = ("g", "gen", "generator", "netg")
JUDGES = ("d", "disc", "discriminator", "netd", "critic")
WON, BEATEN = 0.05, 4.0  # the loss of a discriminator that is always right, and always fooled
LATE = 10  # epochs, after which a generator that cannot learn has lost long ago
ONE_NAME = (("d", "disc", "discriminator", "netd"), ("g", "gen", "generator", "netg"))
GUESS = 2.0 * float(np.log(2.0))  # the loss of answering one half to every sample, both terms added
TIMES_A_GUESS = 3.0
FOOLS = 0.05  # the loss of a generator whose samples are all taken for real
GUESSED_POINTS = 8
RIGHT = 0.02  # of ln 2, where a discriminator that is fooled half of the time stands
WON_LASTS = 0.3  # of the run, to the end
AWAY = 3.0  # times its start: the loss of a generator that is seen through
WON_POINTS = 10
MANY = 30  # points; fewer do not tell a generator that gave up from one that never learnt
COUNTED = re.compile(
    r"(?i)^(?:num|n|nr|number|covered|captured|found|#)?[ _]?(?:of[ _])?modes?"
    r"(?:[ _](?:covered|captured|found|count|coverage))?$"
)
MODES_LAST = 0.6  # of the run, to its end
HALF = 0.5  # of the modes that were covered
EVALUATIONS = 8


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


@dataclass(frozen=True, slots=True)
class Game:
    """The losses of a game that is lost, since when, and their levels."""

    judge: Series
    maker: Series
    since: int
    judged: float
    made: float
    began: float = 0.0
    is_sure: bool = True


def fooled_judge(run: Run) -> Game | None:
    """Return a game whose discriminator is worse than a guess for half of the run."""
    judge, maker = player_loss(run, ONE_NAME[0]), player_loss(run, ONE_NAME[1])
    if judge is None or maker is None or min(len(judge), len(maker)) < GUESSED_POINTS:
        return None
    if min(float(judge.values.min()), float(maker.values.min())) < 0:
        return None
    start = len(judge) // 2
    lowest, fooled = float(judge.values[start:].min()), float(maker.values[len(maker) // 2 :].max())
    is_lost = lowest >= TIMES_A_GUESS * GUESS and fooled <= FOOLS
    return Game(judge, maker, start, lowest, fooled) if is_lost else None


def winning_judge(run: Run) -> Game | None:
    """Return a game whose discriminator is always right, and whose generator's loss runs away."""
    judge = player_loss(run, (*ONE_NAME[0], "d_loss"))
    maker = player_loss(run, (*ONE_NAME[1], "g_loss"))
    if judge is None or maker is None or min(len(judge), len(maker)) < WON_POINTS:
        return None
    if float(judge.values.min()) < 0 or "hinge" in str(run.config.settings).lower():
        return None
    level = float(np.median(judge.values[int(len(judge) * (1 - WON_LASTS)) :]))
    start = float(np.median(np.abs(maker.values[: max(1, len(maker) // 10)])))
    end = float(np.median(maker.values[-max(1, len(maker) // 10) :]))
    if level > RIGHT * np.log(2) or end < AWAY * start or end < 2.0:
        return None
    first = min(since(judge.values <= 0.2 * np.log(2)), len(judge) - 1)
    is_sure = min(len(judge), len(maker)) >= MANY or was_in_balance(judge, first)
    return Game(judge, maker, first, level, end, start, is_sure)


def covered_modes(run: Run) -> tuple[Series, int, float, float] | None:
    """Return a count of modes that fell to one or to half of its best: since when, best, level."""
    for name in run.series if is_even_game(run) else ():
        series = run.get(name)
        if series is None or not COUNTED.match(name.removeprefix("other/")):
            continue
        finite = series.finite()
        start = int(len(finite) * (1.0 - MODES_LAST))
        if len(finite) < EVALUATIONS or float(finite.values.min()) < 0:
            continue
        top, level = float(finite.values.max()), float(np.median(finite.values[start:]))
        if level == 1.0 or (top >= 2.0 and level <= HALF * top):
            return finite, start, top, level
    return None
