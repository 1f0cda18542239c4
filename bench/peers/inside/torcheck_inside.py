"""torcheck: parameters change, no NaN or infinity, and a classifier gives no probabilities."""

from __future__ import annotations

import importlib
from typing import Any

torcheck = importlib.import_module("torcheck")


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Register the optimizer and the checks of its README."""
    torcheck.register(optimizer)
    torcheck.add_module_changing_check(model, module_name="model")
    torcheck.add_module_nan_check(model, module_name="model")
    torcheck.add_module_inf_check(model, module_name="model")
    if is_classifier:
        torcheck.add_module_output_range_check(
            model, output_range=(0, 1), negate_range=True, module_name="model"
        )
