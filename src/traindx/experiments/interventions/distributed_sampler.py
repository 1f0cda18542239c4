"""Gives each rank its own part of the training data."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils.data import DistributedSampler, SequentialSampler

from . import data_loaders
from .change_report import ChangeReport
from .data_order import has_own_order, sampler_of, set_sampler


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Put a sampler that divides the data into loaders of the training that have none."""
    ours: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def divide(loader: Any) -> None:
        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        if loader in ours:
            ours[loader] += 1
            sampler_of(loader).set_epoch(ours[loader])  # another order in each pass
            return
        is_divided = isinstance(sampler_of(loader), DistributedSampler)
        if distributed.get_world_size() < 2 or is_divided or has_own_order(loader, report):
            return
        is_ordered = isinstance(sampler_of(loader), SequentialSampler)
        set_sampler(loader, DistributedSampler(loader.dataset, shuffle=not is_ordered))
        ours[loader] = 0
        report.count()

    data_loaders.on_open(report, divide)
    data_loaders.note_if_unused(report)
