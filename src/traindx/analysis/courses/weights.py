"""What the figures of curves weigh: tables fitted by `python -m bench.curve_weights`."""

from collections.abc import Mapping

OVERFITTING: Mapping[str, float] = {
    "constant": -3.68,
    "parts": 5.92,
    "lost": 3.05,
    "sure": 1.73,
    "steady": 3.77,
    "after": 6.40,
    "gap": 1.43,
    "score_loss": 6.92,
    "score_gain": 0.00,
}
