from .data import PairStream
from .model import DualEncoder

__all__ = ["PairStream", "DualEncoder"]
