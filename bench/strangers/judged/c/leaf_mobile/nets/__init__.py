from .registry import build
from . import mobile  # noqa: F401  (registers the architectures)

__all__ = ["build"]
