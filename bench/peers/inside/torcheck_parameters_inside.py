"""torcheck on parameters alone, for a model whose output is no single tensor."""

from __future__ import annotations

import importlib
from typing import Any

torcheck = importlib.import_module("torcheck")


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Register the optimizer and the checks of tensors in its README."""
    torcheck.register(optimizer)
    torcheck.add_module_changing_check(model, module_name="model")
    for name, parameter in model.named_parameters():
        torcheck.add_tensor_nan_check(parameter, tensor_name=name, module_name="model")
        torcheck.add_tensor_inf_check(parameter, tensor_name=name, module_name="model")
