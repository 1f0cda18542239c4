import math

import torch
from torch import nn

from lion import Lion

torch.manual_seed(0)


def surface(xy):
    x, y = xy.unbind(-1)
    return torch.sin(3 * x) * torch.cos(2 * y) + 0.5 * x * y


def sample(key, n):
    g = torch.Generator().manual_seed(key)
    xy = torch.rand(n, 2, generator=g) * 4 - 2
    return xy, surface(xy).unsqueeze(-1)


class Fourier(nn.Module):
    def __init__(self, n_freq=16, scale=1.0):
        super().__init__()
        self.register_buffer("freq", torch.randn(2, n_freq) * scale)

    def forward(self, x):
        z = x @ self.freq
        return torch.cat([z.sin(), z.cos()], -1) / math.sqrt(2)


def make_train_step(model, tx):
    def train_step(batch):
        def closure():
            tx.zero_grad()
            loss = nn.functional.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss
        return tx.step(closure).item()
    return train_step


model = nn.Sequential(Fourier(), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
tx = Lion(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
train_step = make_train_step(model, tx)
held_out = sample(10_000, 1000)

for step in range(601):
    loss = train_step(sample(step, 128))
    if step % 100 == 0:
        with torch.no_grad():
            test = nn.functional.mse_loss(model(held_out[0]), held_out[1]).item()
            size = math.sqrt(sum(p.pow(2).sum().item() for p in model.parameters()))
        print(f"step {step:4d}  train {loss:.4f}  held out {test:.4f}  |theta| {size:.2f}")
