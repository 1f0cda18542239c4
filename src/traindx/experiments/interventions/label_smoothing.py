"""Trains on labels as they are where the loss smooths them; evaluation stays as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .replacement import change_arguments


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the smoothing of losses that gradients flow through."""
    wanted = float(values.get("value", 0.0))

    def smooth(arguments: dict[str, Any]) -> None:
        given = arguments.get("input")
        is_training = isinstance(given, torch.Tensor) and given.requires_grad
        if is_training and float(arguments.get("label_smoothing") or 0.0) != wanted:
            arguments["label_smoothing"] = wanted
            report.count()

    report.note_if_idle("labels that the program smooths by hand are not reached")
    change_arguments(functional, "cross_entropy", report, smooth)
