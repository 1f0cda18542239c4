from __future__ import annotations

from typing import Iterable

import torch
from torch import Tensor, nn


class BaseTrainer:
    """Template-method trainer; projects override the hooks they need."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, max_norm: float = 5.0) -> None:
        self.model = model
        self.optimizer = optimizer
        self.max_norm = max_norm
        self.global_step = 0

    # hooks -----------------------------------------------------------------
    def compute_loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        raise NotImplementedError

    def backward_pass(self, loss: Tensor) -> None:
        loss.backward()

    def update(self) -> None:
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()

    def on_epoch_end(self, epoch: int) -> None:
        pass

    # loop ------------------------------------------------------------------
    def fit(self, batches: Iterable, epochs: int) -> None:
        for epoch in range(epochs):
            self.model.train()
            for batch in batches:
                self.optimizer.zero_grad()
                self.backward_pass(self.compute_loss(batch))
                self.update()
                self.global_step += 1
            self.on_epoch_end(epoch)
