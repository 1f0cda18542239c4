"""Trains on the labels of each batch in random order: what is learnt then is chance."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .data_order import own_generator
from .plain_losses import KINDS
from .replacement import change_arguments


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Permute the targets of losses that gradients flow through."""
    generator = own_generator(int(values.get("seed", 0)))

    def permute(arguments: dict[str, Any]) -> None:
        given, target = arguments.get("input"), arguments.get("target")
        is_training = isinstance(given, torch.Tensor) and given.requires_grad
        if is_training and isinstance(target, torch.Tensor) and target.ndim and len(target) > 1:
            order = torch.randperm(len(target), generator=generator)
            arguments["target"] = target[order.to(target.device)]
            report.count()

    report.note_if_idle("losses that are written by hand are not reached")
    for name in KINDS:
        change_arguments(functional, name, report, permute)
