from .augment import TwoViews
from .loss import nt_xent
from .net import Encoder

__all__ = ["Encoder", "TwoViews", "nt_xent"]
