"""Trains a regression on standardised targets, and gives its outputs in their own units.

An affine step behind the model turns what it gives into the units of the targets, and gradients are
scaled as if the loss were taken in standard deviations. The program sees its own units throughout.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from . import forwards, loss_calls
from .change_report import ChangeReport
from .loss_calls import LossCall
from .plain_losses import VALUES

BATCHES = 10  # that the statistics are taken from
LEAST = 1e-12
LINEAR = frozenset({"l1_loss", "smooth_l1_loss", "huber_loss"})  # in the error; others square it


class StandardTargets:
    """Mean and deviation of the targets, as known from the first batches."""

    def __init__(self, report: ChangeReport) -> None:
        self.report = report
        self.batches = self.count = self.power = 0
        self.total = self.squares = self.mean = 0.0
        self.deviation = 1.0
        self.models: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def learn(self, call: LossCall) -> None:
        """Take a batch of targets into account, until enough are known."""
        is_ours = call.has_gradient and call.kind == VALUES
        if not is_ours or self.batches >= BATCHES or not loss_calls.is_output(call.given):
            return
        values = call.target.detach().double()
        self.batches += 1
        self.count += values.numel()
        self.total += float(values.sum())
        self.squares += float(values.square().sum())
        self.mean = self.total / self.count
        self.deviation = max(LEAST, self.squares / self.count - self.mean**2) ** 0.5
        self.power = 1 if call.name in LINEAR else 2
        model = loss_calls.last.model()
        if model is not None:
            self.models.add(model)

    def in_units(self, model: nn.Module, args: Any, output: Any) -> Any:
        """Return an output in the units of the targets; None leaves it as it is."""
        if model not in self.models or not isinstance(output, torch.Tensor):
            return None
        changed = output * self.deviation + self.mean
        if changed.requires_grad:
            self.report.count()
            scale = self.deviation**-self.power
            changed.register_hook(lambda gradient: gradient * scale)
        return changed


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Standardise from the second step on: the first tells what the targets are like."""
    targets = StandardTargets(report)
    loss_calls.on_loss(report, targets.learn)
    forwards.on_output(report, targets.in_units)
