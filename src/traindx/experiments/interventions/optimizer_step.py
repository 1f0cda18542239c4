"""Takes the step that a program never takes, after each backward pass."""

from __future__ import annotations

from typing import Any

import torch

from . import moments
from .change_report import ChangeReport

CLEARED_AFTER = 3  # backward passes without a step, in a program that clears its gradients
CARRIED_AFTER = 9  # where it never does: it may be accumulating, and eight batches are usual


class Stepping:
    """Watches whether the program steps, and steps if it does not."""

    def __init__(self, report: ChangeReport) -> None:
        self.report = report
        self.backwards = 0
        self.is_clearing = False
        self.is_off = False
        self.is_own = False

    def step_begins(self, optimizer: torch.optim.Optimizer) -> None:
        """Leave a program alone that steps by itself."""
        if not self.is_own and not self.is_off:
            self.is_off = True
            if self.report.applied:
                self.report.note("the program took a step itself after all; left alone since then")

    def backward_begins(self, tensors: Any) -> None:
        """Notice that gradients are cleared between backward passes."""
        if self.backwards and not self.is_off and not self.is_clearing:
            first = [p for o in moments.live_optimizers() for p in moments.parameters_of(o)]
            self.is_clearing = not any(
                p.grad is not None and bool(p.grad.detach().any()) for p in first[:64]
            )

    def backward_ends(self, tensors: Any) -> None:
        """Step, once it is known that nobody else does."""
        self.backwards += 1
        patience = CLEARED_AFTER if self.is_clearing else CARRIED_AFTER
        if self.is_off or self.backwards < patience:
            return
        found = moments.live_optimizers()
        if not found:
            self.report.note("the program has no optimizer that could take a step")
        scaler = moments.scalers[0]() if moments.scalers else None
        self.is_own = True
        try:
            for optimizer in found:
                if any(p.grad is not None for p in moments.parameters_of(optimizer)):
                    self._step(optimizer, scaler)
        finally:
            self.is_own = False

    def _step(self, optimizer: torch.optim.Optimizer, scaler: Any) -> None:
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        self.report.count()


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Step after each backward pass where the program never does."""
    stepping = Stepping(report)
    moments.on("step_begins", report, stepping.step_begins)
    moments.on("backward_begins", report, stepping.backward_begins)
    moments.on("backward_ends", report, stepping.backward_ends)
