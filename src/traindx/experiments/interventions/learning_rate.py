"""Takes each step with another learning rate: times a factor, a value, or without a schedule."""

from __future__ import annotations

from typing import Any

import torch

from .change_report import ChangeReport
from .optimizer_settings import override


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Scale the rate of every group, or set the largest to a value and keep the proportions.

    Without a schedule each group keeps the rate that its schedule starts from or warms up to.
    """
    factor = values.get("factor")
    value = values.get("value")
    reached: dict[int, float] = {}
    is_constant = bool(values.get("constant"))

    def rate(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        if is_constant:
            known = reached.get(id(group), 0.0)
            reached[id(group)] = max(float(group.get("initial_lr", 0.0)), float(current), known)
            return reached[id(group)]
        if factor is not None:
            return current * float(factor)
        if value is None:
            return current
        largest = max(float(g["lr"]) for g in optimizer.param_groups)
        wanted = float(value) * (float(current) / largest if largest > 0 else 1.0)
        if not isinstance(current, torch.Tensor):
            return wanted
        return torch.full_like(current, wanted)

    override("lr", rate, report)
