from .model import DomainNet
from .reverse import ReverseGradient, reverse_gradient
