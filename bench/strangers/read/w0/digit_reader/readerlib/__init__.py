from .data import DigitSet, PlainDigitSet
from .loop import fit, score

__all__ = ["DigitSet", "PlainDigitSet", "fit", "score"]
