"""A perceptron on rows of numbers: a few milliseconds per step."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bench.overhead_programs.job import Job


def make() -> Job:
    """Build the job."""
    rows = torch.randn(4096, 64)
    labels = rows[:, :10].argmax(1)
    model = nn.Sequential(
        nn.Linear(64, 384), nn.BatchNorm1d(384), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(384, 384), nn.ReLU(),
        nn.Linear(384, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )  # fmt: skip
    loader = DataLoader(TensorDataset(rows, labels), batch_size=128, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Job(model, nn.CrossEntropyLoss(), optimizer, loader)
