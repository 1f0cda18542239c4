"""Takes each step with another momentum: SGD's, or the first beta of Adam and its kin."""

from __future__ import annotations

from typing import Any

import torch

from .change_report import ChangeReport
from .optimizer_settings import override


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the momentum of every group."""
    value = float(values.get("value", 0.9))

    def momentum(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        return value

    def betas(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        return (value, *tuple(current)[1:])

    override("momentum", momentum, report)
    override("betas", betas, report)
