"""Gives the training data in random order where the program gives it in order.

The order comes from a generator of its own; the program's random numbers stay as they are.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

from . import data_loaders
from .change_report import ChangeReport
from .data_order import has_own_order, own_generator, sampler_of, set_sampler


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Shuffle the loaders that feed the training."""
    seed = int(values.get("seed", 0))

    def shuffle(loader: Any) -> None:
        sampler = sampler_of(loader)
        if isinstance(sampler, DistributedSampler):
            if not sampler.shuffle:
                sampler.shuffle = True
                report.count()
            return
        if has_own_order(loader, report) or type(sampler) is not SequentialSampler:
            return
        if len(loader.dataset) > 1:
            set_sampler(loader, RandomSampler(loader.dataset, generator=own_generator(seed)))
            report.count()

    data_loaders.on_open(report, shuffle)
    data_loaders.note_if_unused(report)
