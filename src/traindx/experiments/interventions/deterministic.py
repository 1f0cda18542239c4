"""Asks torch for algorithms that give the same result each time."""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch

from . import moments
from .change_report import ChangeReport


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Switch to deterministic algorithms, where there are any."""
    if not torch.are_deterministic_algorithms_enabled():
        report.count()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    warnings.filterwarnings("ignore", message=".*deterministic.*", category=UserWarning)

    def insist(*_: Any) -> None:
        if moments.steps < 2:  # the program may have set what it likes better
            torch.backends.cudnn.benchmark = False
            torch.backends.cudnn.deterministic = True

    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would change results
    insist()
    moments.on("step_begins", report, insist)
