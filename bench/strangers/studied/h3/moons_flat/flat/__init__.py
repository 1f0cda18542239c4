from .sharpness import SharpnessAware
from .network import MoonNet
