"""Gives the target the shape of the prediction where the two would be broadcast."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .replacement import change_arguments

LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "poisson_nll_loss",
    "soft_margin_loss",
)


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Reshape targets in the losses of torch; a loss written by hand is out of reach."""

    def reshape(arguments: dict[str, Any]) -> None:
        prediction, target = arguments.get("input"), arguments.get("target")
        if not isinstance(prediction, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        if prediction.shape == target.shape or prediction.numel() != target.numel():
            return
        if target.numel() > 1 and _plain(prediction) == _plain(target):
            arguments["target"] = target.reshape(prediction.shape)
            report.count()

    def flatten(arguments: dict[str, Any]) -> None:
        prediction, target = arguments.get("input"), arguments.get("target")
        if not isinstance(prediction, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        wanted = prediction.shape[:1] + prediction.shape[2:]
        is_column = target.ndim == prediction.ndim and target.shape[1:2] == (1,)
        if is_column and not target.is_floating_point() and target.numel() == wanted.numel():
            arguments["target"] = target.reshape(wanted)
            report.count()

    report.note_if_idle("losses that are written by hand are not reached")
    for name in LOSSES:
        change_arguments(functional, name, report, reshape)
    for name in ("cross_entropy", "nll_loss"):
        change_arguments(functional, name, report, flatten)


def _plain(tensor: torch.Tensor) -> list[int]:
    return [n for n in tensor.shape if n != 1]
