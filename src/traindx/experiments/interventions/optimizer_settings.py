"""Settings of optimizers that hold for the length of a step and are put back after it.

A scheduler reads and writes the program's own values, so that it goes its way undisturbed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import moments
from .change_report import ChangeReport

Compute = Callable[[torch.optim.Optimizer, "dict[str, Any]", Any], Any]


Kept = list[tuple["dict[str, Any]", str, Any]]
_kept: dict[int, Kept] = {}  # by optimizer: group, key, and the program's own value
_overrides: list[Callable[[torch.optim.Optimizer], Any]] = []


def override(key: str, compute: Compute, report: ChangeReport) -> None:
    """Let each step be taken with a computed setting."""

    def change(optimizer: torch.optim.Optimizer) -> None:
        groups = [g for g in optimizer.param_groups if key in g]
        values = [compute(optimizer, group, group[key]) for group in groups]
        changed = [(g, v) for g, v in zip(groups, values) if not _is_same(v, g[key])]
        for group, value in changed:
            _kept.setdefault(id(optimizer), []).append((group, key, group[key]))
            group[key] = value
        if changed:
            report.count()

    if not _overrides:
        moments.on("step_begins", ChangeReport(), _begin)
        moments.on("step_ends", ChangeReport(), _end)
    _overrides.append(report.guard(change))


def _begin(optimizer: torch.optim.Optimizer) -> None:
    _end(optimizer)  # left from a step that raised
    for change in _overrides:
        change(optimizer)


def _end(optimizer: torch.optim.Optimizer) -> None:
    """Put the program's own values back, the last change first."""
    for group, key, value in reversed(_kept.pop(id(optimizer), [])):
        group[key] = value


def _is_same(left: Any, right: Any) -> bool:
    return left is right or bool(left == right)
