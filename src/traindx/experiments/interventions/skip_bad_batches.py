"""Leaves out batches with values that are no numbers, and labels that no class has."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from . import data_loaders, nested
from .change_report import ChangeReport
from .replacement import change_arguments

MAX_IN_A_ROW = 1000


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Give the next good batch instead of a bad one, and ignore labels out of range."""
    good: list[Any] = []

    def skip(loader: Any, batch: Any, following: Any) -> Any:
        for _ in range(MAX_IN_A_ROW):
            if _is_good(batch):
                break
            report.count()
            if _is_shared() and good:
                return good[0]  # ranks must take the same number of steps
            batch = following()
        else:
            report.note("almost every batch holds values that are no numbers")
        if _is_shared():
            good[:] = [batch]
        return batch

    def ignore(arguments: dict[str, Any]) -> None:
        scores, target = arguments.get("input"), arguments.get("target")
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        if target.is_floating_point() or scores.ndim < 1 or scores.shape == target.shape:
            return
        ignored = arguments.get("ignore_index", -100)
        classes = scores.shape[1 if scores.ndim > 1 else 0]
        is_wrong = ((target < 0) | (target >= classes)) & (target != ignored)
        number = int(is_wrong.sum())
        if number and number < target.numel():
            arguments["target"] = target.masked_fill(is_wrong, ignored)
            report.count(number)

    data_loaders.on_batch(report, skip)
    data_loaders.note_if_unused(report)
    for name in ("cross_entropy", "nll_loss"):
        change_arguments(functional, name, report, ignore)


def _is_good(batch: Any) -> bool:
    return all(
        bool(torch.isfinite(tensor).all())
        for tensor in nested.tensors(batch)
        if tensor.is_floating_point()
    )


def _is_shared() -> bool:
    distributed = torch.distributed
    is_ready = distributed.is_available() and distributed.is_initialized()
    return bool(is_ready and distributed.get_world_size() > 1)
