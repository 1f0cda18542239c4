"""transformers' `DebugUnderflowOverflow` on the model; it prints frames and raises."""

from __future__ import annotations

import importlib
from typing import Any

debug = importlib.import_module("transformers.debug_utils")
kept: list[Any] = []


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Watch the model."""
    kept.append(debug.DebugUnderflowOverflow(model))
