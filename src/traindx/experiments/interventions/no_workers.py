"""Loads data in the process of the training."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from .change_report import ChangeReport
from .replacement import change_arguments

NEEDS_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Build every loader without workers."""

    def stay(arguments: dict[str, Any]) -> None:
        if arguments.get("num_workers"):
            arguments["num_workers"] = 0
            for name in NEEDS_WORKERS:
                arguments.pop(name, None)
            report.count()

    change_arguments(DataLoader, "__init__", report, stay)
