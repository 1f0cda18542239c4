"""A convolutional network on small images: some tens of milliseconds per step."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bench.overhead_programs.job import Job


def _block(inner: int, outer: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inner, outer, 3, padding=1, bias=False),
        nn.BatchNorm2d(outer),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]


def make() -> Job:
    """Build the job."""
    images = torch.randn(1024, 3, 32, 32)
    labels = torch.randint(0, 10, (1024,))
    layers = [*_block(3, 16), *_block(16, 32), *_block(32, 64), nn.Flatten(), nn.Linear(1024, 10)]
    model = nn.Sequential(*layers)
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return Job(model, nn.CrossEntropyLoss(), optimizer, loader)
