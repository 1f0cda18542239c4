"""Raises the learning rate to the program's own over the first steps of each optimizer."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from . import moments
from .change_report import ChangeReport
from .optimizer_settings import override


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Scale the rate of the first steps linearly."""
    length = max(1, int(values.get("steps", 100)))
    taken: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def rate(optimizer: torch.optim.Optimizer, group: dict[str, Any], current: Any) -> Any:
        done = taken.get(optimizer, 0)
        return current if done + 1 >= length else current * ((done + 1) / length)

    def count(optimizer: torch.optim.Optimizer) -> None:
        taken[optimizer] = taken.get(optimizer, 0) + 1

    override("lr", rate, report)
    moments.on("step_ends", report, count)
