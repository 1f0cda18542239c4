"""Takes each step with another weight decay, by default none."""

from __future__ import annotations

from typing import Any

import torch

from .change_report import ChangeReport
from .optimizer_settings import override


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the weight decay of every group that has any."""
    value = float(values.get("value", 0.0))

    def decay(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        # a group without decay (biases, norms) is meant to have none, unless all are without
        has_any = any(float(g.get("weight_decay", 0.0)) for g in optimizer.param_groups)
        return value if float(current) or not has_any else current

    override("weight_decay", decay, report)
