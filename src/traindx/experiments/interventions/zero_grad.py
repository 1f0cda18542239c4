"""Clears, before a backward pass, gradients that are left over from before the last step.

What was accumulated since the last step stays, so that accumulation over batches goes on working.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from . import moments, parameter_owners
from .change_report import ChangeReport

Seen = tuple[torch.Tensor, torch.Tensor, int]  # a parameter, its gradient, how often written


class Leftovers:
    """Gradients that a step has used, as long as nobody touches them."""

    def __init__(self, report: ChangeReport) -> None:
        self.report = report
        self._used: dict[int, list[Seen]] = {}  # by optimizer
        self._cleared: dict[int, list[torch.Tensor]] = {}  # parameters, by optimizer
        self._since: dict[int, list[Seen]] = {}  # what has come to those that were cleared

    def step_ends(self, optimizer: torch.optim.Optimizer) -> None:
        """Remember the gradients that were used."""
        self._used[id(optimizer)] = _see(moments.parameters_of(optimizer))

    def backward_begins(self, tensors: Any) -> None:
        """Clear what is as the last step left it."""
        for key in list(self._since):
            self._forget_if_tidy(key)
        left = {key: [s for s in used if _is_untouched(s)] for key, used in self._used.items()}
        self._used = {key: used for key, used in left.items() if used}
        reached = _reached(tensors) if self._used else None
        for key, used in self._used.items():
            hit = [s for s in used if reached is None or id(s[0]) in reached]
            for parameter, _, _ in hit:
                parameter.grad = None
            if hit:
                self._cleared.setdefault(key, []).extend(s[0] for s in hit)

    def backward_ends(self, tensors: Any) -> None:
        """Look at what has come since."""
        self._since = {key: _see(cleared) for key, cleared in self._cleared.items()}

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Count if the program did not clear the gradients itself before it used them."""
        self._forget_if_tidy(id(optimizer))
        self._since.pop(id(optimizer), None)
        if any(_is_set(p) for p in self._cleared.pop(id(optimizer), ())):
            self.report.count()

    def _forget_if_tidy(self, key: int) -> None:
        """Let go of an optimizer whose gradients the program cleared after all, only later.

        A backward pass of another loss may reach parameters that are cleared before their own.
        """
        seen = self._since.get(key, ())
        if any(p.grad is not grad or not _is_set(p) for p, grad, _ in seen):
            self._cleared.pop(key, None)
            self._since.pop(key, None)


def _see(parameters: Iterable[torch.Tensor]) -> list[Seen]:
    return [(p, p.grad, p.grad._version) for p in parameters if p.grad is not None]


def _is_untouched(seen: Seen) -> bool:
    parameter, gradient, version = seen
    return parameter.grad is gradient and gradient._version == version and _is_set(parameter)


def _reached(losses: Any) -> set[int] | None:
    """Return the parameters that a backward pass comes to, None where that cannot be seen."""
    nodes = list(parameter_owners.nodes(losses))
    if any("Checkpoint" in type(node).__name__ for node in nodes):
        return None
    return {id(node.variable) for node in nodes if hasattr(node, "variable")}


def _is_set(parameter: torch.Tensor) -> bool:
    return parameter.grad is not None and bool(parameter.grad.detach().any())


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Clear what is left over."""
    leftovers = Leftovers(report)
    moments.on("step_ends", report, leftovers.step_ends)
    moments.on("backward_begins", report, leftovers.backward_begins)
    moments.on("backward_ends", report, leftovers.backward_ends)
    moments.on("update", report, leftovers.update)
