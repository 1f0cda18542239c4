"""Epoch loop shared by the load forecasting experiments."""
from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader


class Running:
    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: float, n: int) -> None:
        self.total += value * n
        self.count += n

    @property
    def mean(self) -> float:
        return self.total / self.count


def run_epoch(
    model: nn.Module,
    loader: DataLoader,
    criterion: nn.Module,
    split: str,
    optimizer: torch.optim.Optimizer | None = None,
) -> dict[str, float]:
    model.train(optimizer is not None)
    loss_meter, mae_meter = Running(), Running()
    with torch.set_grad_enabled(split not in ("val", "test")):
        for window, future in loader:
            forecast = model(window)
            loss = criterion(forecast, future)
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            loss_meter.add(loss.item(), len(window))
            mae_meter.add((forecast.detach() - future).abs().mean().item(), len(window))
    return {"loss": loss_meter.mean, "mae": mae_meter.mean}
