"""Computes in the precision of the weights: no autocast, no loss scaling."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .change_report import ChangeReport
from .replacement import replace


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Let autocast and GradScaler be there without effect; weights keep their type."""

    def disabling(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            if getattr(self, "_enabled", False):
                self._enabled = False
                report.count()

        return __init__

    report.note_if_idle("weights that are in half precision themselves are left so")
    replace(torch.amp.autocast_mode.autocast, "__init__", disabling)
    replace(torch.amp.GradScaler, "__init__", disabling)
