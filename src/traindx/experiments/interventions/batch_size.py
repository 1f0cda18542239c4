"""Builds loaders with another batch size."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from .change_report import ChangeReport
from .replacement import change_arguments


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Multiply the batch size of every loader by a factor."""
    factor = float(values["factor"])

    def scale(arguments: dict[str, Any]) -> None:
        size = arguments.get("batch_size", 1)
        if size is None or arguments.get("batch_sampler") is not None:
            report.note("a loader whose batches are made by the program keeps their size")
            return
        wanted = max(1, round(size * factor))
        data = arguments["dataset"]
        if factor > 1 and hasattr(data, "__len__"):
            wanted = max(size, min(wanted, len(data)))  # dropping the last would leave nothing
        if wanted != size:
            arguments["batch_size"] = wanted
            report.count()

    change_arguments(DataLoader, "__init__", report, scale)
