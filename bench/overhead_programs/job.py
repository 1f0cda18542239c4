"""What a training program consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Job:
    """A model with its data, its loss and its optimizer."""

    model: nn.Module
    criterion: nn.Module
    optimizer: torch.optim.Optimizer
    loader: DataLoader[tuple[torch.Tensor, ...]]

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Train on one batch, as everyone does."""
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()

    def batches(self) -> Iterator[tuple[torch.Tensor, ...]]:
        """Yield batches for ever."""
        while True:
            yield from self.loader


Step = Callable[[torch.Tensor, torch.Tensor], None]
