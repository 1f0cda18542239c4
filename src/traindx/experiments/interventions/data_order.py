"""Another order of the data for a loader that is already built."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import BatchSampler, IterableDataset

from .change_report import ChangeReport


def own_generator(seed: int = 0) -> torch.Generator:
    """Return a generator of our own, so that the program's is left alone."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def has_own_order(loader: Any, report: ChangeReport) -> bool:
    """Tell whether the order is made by something that cannot be replaced, and say so."""
    if isinstance(loader.dataset, IterableDataset):
        report.note("a data set that is iterated over gives its own order")
        return True
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not BatchSampler:
        report.note(f"a {type(loader.batch_sampler).__name__} gives its own order")
        return True
    return False


def sampler_of(loader: Any) -> Any:
    """Return what decides on the order; beside a batch sampler, the loader's own has no say."""
    batches = loader.batch_sampler
    return loader.sampler if batches is None else getattr(batches, "sampler", loader.sampler)


def set_sampler(loader: Any, sampler: Any) -> None:
    """Replace the sampler; the loader forbids it by assignment, for those who do not know how."""
    loader.__dict__["sampler"] = sampler
    if loader.batch_sampler is not None:
        loader.batch_sampler.sampler = sampler
