"""Says why a neural-network training run went wrong, shows the evidence, and proves the fix."""

from __future__ import annotations

__version__ = "0.1.0"
