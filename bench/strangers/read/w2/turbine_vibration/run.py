from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from engine import BaseTrainer


def make_signals(n: int, gen: torch.Generator) -> tuple[Tensor, Tensor]:
    t = torch.linspace(0, 1, 64)
    speed = 2 + 6 * torch.rand(n, 1, generator=gen)
    wear = torch.rand(n, 1, generator=gen)
    x = torch.sin(2 * math.pi * speed * t) + wear * torch.sin(2 * math.pi * 3 * speed * t)
    x = x + 0.05 * torch.randn(n, 64, generator=gen)
    return x.unsqueeze(1), wear


class WearNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.head = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class WearTrainer(BaseTrainer):
    """Adds a loss curve, a counter of broken batches and validation."""

    def __init__(self, *args, val_loader: DataLoader, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.val_loader = val_loader
        self.curve: list[float] = []
        self.broken = 0

    def compute_loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        x, y = batch
        return nn.functional.smooth_l1_loss(self.model(x), y)

    def backward_pass(self, loss: Tensor) -> None:
        if not torch.isfinite(loss):
            self.broken += 1
            return
        self.curve.append(loss.item())

    @torch.no_grad()
    def on_epoch_end(self, epoch: int) -> None:
        self.model.eval()
        err = torch.cat([(self.model(x) - y).abs() for x, y in self.val_loader]).mean()
        recent = self.curve[-20:]
        print(f"[{epoch}] step={self.global_step} loss={sum(recent) / len(recent):.4f} "
              f"val_mae={err:.4f} broken={self.broken}")


def main() -> None:
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(11)
    train = TensorDataset(*make_signals(800, gen))
    val = TensorDataset(*make_signals(200, gen))
    model = WearNet()
    trainer = WearTrainer(
        model,
        torch.optim.AdamW(model.parameters(), lr=2e-3),
        val_loader=DataLoader(val, batch_size=100),
    )
    trainer.fit(DataLoader(train, batch_size=40, shuffle=True), epochs=6)


if __name__ == "__main__":
    main()
