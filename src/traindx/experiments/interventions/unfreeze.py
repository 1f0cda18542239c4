"""Trains the parameters that do not require gradients.

A model that is frozen as a whole and in evaluation mode is a teacher or a measure, and stays so.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from . import forwards
from .change_report import ChangeReport
from .parameter_owners import hold_all


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Let every parameter of a model in training require gradients, and an optimizer hold it."""
    known: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def unfreeze(model: nn.Module, args: Any) -> None:
        if not torch.is_grad_enabled() or model in known:
            return
        known.add(model)
        parameters = list(model.parameters())
        frozen = [p for p in parameters if not p.requires_grad and p.is_floating_point()]
        if not frozen:
            return
        if len(frozen) == len(parameters) and not model.training:
            report.note(f"{type(model).__name__} is frozen and in evaluation mode; left alone")
            return
        if type(model).__name__ == "DistributedDataParallel":
            report.note("parameters that are frozen when ranks are joined are not averaged later")
        for parameter in frozen:
            parameter.requires_grad_(True)
        report.count(len(frozen))

    forwards.on_begin(report, unfreeze)
    hold_all(ChangeReport())
