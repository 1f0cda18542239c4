"""`torch.autograd.set_detect_anomaly(True)`; it warns and raises in the backward pass."""

from __future__ import annotations

import importlib
from typing import Any

torch = importlib.import_module("torch")


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Turn the detection on."""
    torch.autograd.set_detect_anomaly(True)
