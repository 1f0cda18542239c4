"""What is told of a data loader."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from traindx.capture.recorder.loader_passes import Loaders

DATA = TensorDataset(torch.zeros(8, 2), torch.zeros(8))


def told(loader: DataLoader[object]) -> dict[str, object]:
    loaders = Loaders()
    loaders.begins(loader, iter(loader), 0)
    return loaders.untold[0][1]


@pytest.mark.parametrize(
    ("loader", "is_shuffled"),
    [
        (DataLoader(DATA, 2), False),
        (DataLoader(DATA, 2, shuffle=True), True),
        (DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 2, False)), True),
        (DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 2, False)), False),
    ],
)
def test_the_order_is_that_of_the_sampler_that_decides(
    loader: DataLoader[object], is_shuffled: bool
) -> None:
    assert told(loader)["is_shuffled"] is is_shuffled
