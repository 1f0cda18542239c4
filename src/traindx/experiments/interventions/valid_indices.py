"""Looks up the nearest row of a table where an index lies beyond it."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .replacement import change_arguments


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Move indices that an embedding has no row for to its first or last one."""

    def move(arguments: dict[str, Any]) -> None:
        indices, table = arguments.get("input"), arguments.get("weight")
        if not isinstance(indices, torch.Tensor) or not isinstance(table, torch.Tensor):
            return
        if indices.is_floating_point() or not indices.numel() or not len(table):
            return
        is_wrong = (indices < 0) | (indices >= len(table))
        number = int(is_wrong.sum())
        if number:
            arguments["input"] = indices.clamp(0, len(table) - 1)
            report.count(number)

    for name in ("embedding", "embedding_bag"):
        change_arguments(functional, name, report, move)
