"""A loss beside that of guessing: whether it stays there, and how it leaves."""

from math import log

import numpy as np

from traindx.analysis.curves import curve, running_median, slope_z
from traindx.model.findings import Evidence, Strength, cite, cite_setting
from traindx.model.run import Floats, Run, Series

STARTS_AT_CHANCE = 0.03  # of ln C, where the validation loss begins
LEFT = 0.7  # of ln C, above which it ends
FELL = 0.03  # of ln C at least; less is no fall
STRAIGHT = 0.995  # of the variance that a line explains
UNBENT = 0.8  # the second half falls at this share of the first half's pace, or faster
GAINED = 0.35  # of the loss of a model that knows nothing
STILL_FALLS = 0.6  # the second half falls at this share of the first half's pace, or faster
NEAR_CHANCE = 0.15  # how far the first loss may be from that of a guess
CLASS_COUNTS = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")
VOCABULARIES = ("vocab_size", "n_vocab", "num_tokens", "vocabulary_size")
GUESSABLE = (*range(2, 21), 100, 1000)  # beyond, ln C is so dense that any loss lies near one
KNOWN_WITHIN = 0.03  # of ln C where the count is known
GUESSED_WITHIN = 0.005  # where it is guessed from the loss alone
FEW_STEPS = 200.0  # healthy runs leave chance within some hundreds of steps, rarely before
JUDGED_POINTS = 4  # of which an accuracy, and a rate, are judged
FEW_CLASSES = 19  # of the guessable counts; beyond, 1/C is too small to tell one from the next
LIKE_A_GUESS = 0.25  # of 1/C: the noise of an accuracy over a few hundred examples
BELOW, ABOVE = 0.98, 1.12  # of ln C: a model that is no better than a guess, sure of a few answers
SMALL_RATE = 1e-5  # rarely used from scratch, and never seen to learn there
NEAR_GUESS = 0.02  # of ln C
FALL = -4.0  # a surer fall than this (Mann-Kendall) means that the run learns
AT_LEVEL = 0.04  # of the entropy of the labels
BLOWN_UP = 1.5  # of the entropy: a loss that was so high has another story


def is_line_from_chance(values: Floats, chance: float) -> bool:
    """Tell whether a loss falls from the level of guessing in one straight line."""
    first, last = float(values[0]), float(values[-1])
    if (
        abs(first - chance) > STARTS_AT_CHANCE * chance
        or not LEFT * chance < last < first - FELL * chance
    ):
        return False
    at = np.arange(len(values), dtype=np.float64)
    explained = float(np.corrcoef(at, values)[0, 1]) ** 2
    middle = float(values[len(values) // 2])
    pace = (middle - last) / max(1, len(values) - 1 - len(values) // 2)
    early = (first - middle) / (len(values) // 2)
    return explained > STRAIGHT and early > 0.0 and pace > UNBENT * early


def is_unbent_from_chance(values: Floats, chance: float) -> bool:
    """Tell whether a loss leaves the level of guessing at a pace that does not slow down."""
    c = curve(values)
    if abs(c.start_value - chance) > NEAR_CHANCE * chance or slope_z(values) > -5.0:
        return False
    gained = (c.start_value - c.end_value) / chance
    quarter = len(values) // 4
    first, second, third, fourth = (float(np.mean(p)) for p in np.array_split(values, 4))
    early, late = first - (second + third) / 2, (second + third) / 2 - fourth
    return quarter > 0 and 0.0 < gained < GAINED and late >= STILL_FALLS * early > 0.0


def classes_at_level(run: Run, level: float) -> tuple[int, tuple[Evidence, ...]]:
    """The number of classes whose guessing level the loss has, and how we know the number."""
    setting = run.config.find(*CLASS_COUNTS, *VOCABULARIES)
    count = run.config.number(*CLASS_COUNTS, *VOCABULARIES)
    if setting is not None and count is not None and count >= 2:
        is_there = abs(level - log(count)) < KNOWN_WITHIN * log(count)
        return (int(count), (cite_setting(setting),)) if is_there else (0, ())
    nearest = min(GUESSABLE, key=lambda c: abs(level - log(c)))
    is_there = abs(level - log(nearest)) < GUESSED_WITHIN * log(nearest)
    return (nearest, ()) if is_there else (0, ())


def classes_by_accuracy(run: Run, loss: Series) -> tuple[int, tuple[Evidence, ...]]:
    """The number of classes of which both loss and accuracy are those of a guess."""
    names = ("accuracy/val", "accuracy/test", "accuracy/train")
    accuracy = next((s.finite() for n in names if (s := run.get(n)) is not None), None)
    if accuracy is None or len(accuracy) < JUDGED_POINTS:
        return 0, ()
    shares = accuracy.values / (100.0 if float(accuracy.values.max()) > 1.5 else 1.0)
    level = float(np.median(shares[len(shares) // 2 :]))
    end = float(np.median(loss.values[-max(3, len(loss) // 3) :]))
    low = float(running_median(loss.values, max(5, 2 * (len(loss) // 8) + 1)).min())
    for classes in GUESSABLE[:FEW_CLASSES]:
        guess = log(classes)
        is_share = abs(level * classes - 1.0) < LIKE_A_GUESS
        is_never_better = float(shares.max()) * classes < 1.0 + 2.0 * LIKE_A_GUESS
        is_there = BELOW * guess < low and end < ABOVE * guess
        if is_share and is_never_better and is_there:
            says = f"{accuracy.origin.name} stays at {level:.3g}; random guessing gives 1/{classes}"
            return classes, (cite(accuracy, says, 0, -1, level=level),)
    return 0, ()


def causes_by_rate(run: Run, loss: Series, guess: float) -> dict[str, Strength]:
    """What the learning rate says about a loss that stays at the level of guessing."""
    rate = run.get("lr")
    if rate is None or len(rate.finite()) < JUDGED_POINTS or float(rate.finite().values.max()) <= 0:
        return {}
    rates = rate.finite()
    if float(rates.values.max()) < SMALL_RATE:
        return {"lr-too-low": Strength.STRONG}
    early = loss.values[1 : max(2, len(loss) // 2)]
    ends = all(abs(float(v) - guess) < NEAR_GUESS * guess for v in loss.values[[0, -1]])
    falls = rates.last < 0.5 * float(rates.values.max())
    if falls and ends and float(np.median(early)) > (1.0 + NEAR_GUESS) * guess:
        return {"lr-too-high": Strength.STRONG}
    return {}


def has_only_begun(loss: Series) -> bool:
    """Tell whether too few steps were taken for a healthy run to have left this level."""
    passes = float(np.ptp(loss.epochs)) if len(loss.epochs) else 0.0
    return loss.axis == "step" and float(np.ptp(loss.steps)) < FEW_STEPS and passes < 2.0


def learns(loss: Series) -> bool:
    """Tell whether a loss falls surely, or by a good part of its level."""
    c = curve(loss.values)
    is_sure = slope_z(loss.values) < FALL and c.net_improvement > 3.0 * c.noise
    return is_sure or c.net_improvement > 0.05


def stays_at_level(loss: Floats, level: float) -> bool:
    """Tell whether a loss stays at a level from its first part on."""
    parts = [float(np.median(part)) for part in np.array_split(loss, 8)[1:]]
    is_near = all(abs(p - level) < AT_LEVEL * level for p in parts)
    return is_near and float(loss.max()) < BLOWN_UP * level
