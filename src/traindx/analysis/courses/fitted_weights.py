"""What the figures of curves weigh: tables fitted by `python -m bench.curve_weights`."""

from collections.abc import Mapping

OVERFITTING: Mapping[str, float] = {
    "constant": -3.66,
    "parts": 5.86,
    "lost": 3.20,
    "sure": 1.66,
    "steady": 3.77,
    "after": 6.05,
    "gap": 1.47,
    "score_loss": 6.96,
}
TROUBLE: Mapping[str, float] = {
    "constant": -1.52,
    "small_gain": 2.55,
    "behind": 0.88,
    "rise": 4.67,
    "few_right": 3.07,
    "training_from_best": 5.51,
    "huge": 4.34,
}
