"""Estimate the length of a pendulum from a noisy angle recording."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    samples: int = 1600
    steps: int = 24
    hidden: int = 48
    batch: int = 32
    epochs: int = 18
    lr: float = 3e-4
    seed: int = 0
    dtype: torch.dtype = torch.bfloat16


def recordings(s):
    g = torch.Generator().manual_seed(123)
    length = 0.3 + 1.7 * torch.rand(s.samples, 1, generator=g)
    phase = 6.283 * torch.rand(s.samples, 1, generator=g)
    amp = 0.5 + 0.5 * torch.rand(s.samples, 1, generator=g)
    t = torch.linspace(0, 2.4, s.steps)
    angle = amp * torch.sin((9.81 / length).sqrt() * t + phase)
    angle = angle + 0.02 * torch.randn(angle.shape, generator=g)
    return angle.unsqueeze(-1), (length - 1.15) / 0.49


class PendulumNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def main():
    s = Settings()
    torch.manual_seed(s.seed)
    x, y = recordings(s)
    x, y = x.to(s.dtype), y.to(s.dtype)
    n_train = int(0.8 * s.samples)
    model = PendulumNet(s.hidden).to(s.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=s.lr)
    for epoch in range(1, s.epochs + 1):
        losses = []
        for idx in torch.randperm(n_train).split(s.batch):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            pred = model(x[n_train:])
            val = nn.functional.mse_loss(pred.float(), y[n_train:].float()).item()
        print(f"epoch {epoch:2d} loss {sum(losses) / len(losses):.4f} val_loss {val:.4f}")


if __name__ == "__main__":
    main()
