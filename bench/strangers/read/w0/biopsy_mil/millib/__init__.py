from .bags import BagSet, collate_bags
from .noisy_or import NoisyOrNet, bag_nll

__all__ = ["BagSet", "collate_bags", "NoisyOrNet", "bag_nll"]
