"""Levels that a metric has where nothing is learnt: of a guess, of one answer for all inputs."""

from __future__ import annotations

from math import log

import numpy as np

from traindx.model.run import Floats

MOST_CLASSES = 1000
AT_LEVEL = 0.012  # of the loss of a guess; a batch of a few hundred shakes it that much
SAME_SCORE = 0.012  # of an F1 that one answer for all inputs gives; averages over batches blur it
FEW_CLASSES = 20  # of which an F1 may be the mean


def excess_over_guess(level: float, classes: int) -> float:
    """Return by how much of itself a cross-entropy is above that of a guess; below is negative."""
    return level / log(classes) - 1.0 if classes > 1 else float("inf")


def f1_of_one_answer(accuracy: float) -> dict[str, float]:
    """Return the F1 of a model that gives all inputs the class with that share, by its average."""
    binary = 2.0 * accuracy / (1.0 + accuracy)
    told = {"of that class": binary, "weighted by class": accuracy * binary}
    return told | {
        f"averaged over {classes} classes": binary / classes
        for classes in range(2, FEW_CLASSES + 1)
    }


def averages_of_one_answer(accuracy: Floats, f1: Floats, classes: int = 0) -> list[str]:
    """Return the averages by which an F1 is that of one answer for all inputs, at every point.

    With the number of classes known only their average is asked for, beside the two others.
    """
    if not len(accuracy) or len(accuracy) != len(f1) or bool(np.any(f1 <= 0.0)):
        return []
    expected = [f1_of_one_answer(float(a)) for a in accuracy]
    return [
        name
        for name in expected[0]
        if (not name.startswith("averaged") or classes in (0, _count(name)))
        and all(
            abs(float(given) / told[name] - 1.0) < SAME_SCORE
            for told, given in zip(expected, f1, strict=True)
        )
    ]


def _count(name: str) -> int:
    digits = [word for word in name.split() if word.isdigit()]
    return int(digits[0]) if digits else 0


def shares_of_one_answer(recalls: Floats) -> bool:
    """Tell whether, of the recalls of all classes, one is all and every other is nothing."""
    return len(recalls) > 1 and float(recalls.max()) > 0.99 and float(np.sort(recalls)[-2]) < 0.01
