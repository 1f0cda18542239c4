"""Takes each step with another epsilon in the denominator of adaptive optimizers."""

from __future__ import annotations

from typing import Any

import torch

from .change_report import ChangeReport
from .optimizer_settings import override


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the epsilon of every group."""
    value = float(values.get("value", 1e-8))

    def epsilon(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        return (value, *current[1:]) if isinstance(current, tuple) else value

    override("eps", epsilon, report)
