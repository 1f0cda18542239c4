"""Ensemble dynamics model for a pendulum, used later for planning."""
from types import SimpleNamespace as NS

import numpy as np
import torch
import torch.nn as nn

CONFIG = NS(
    seed=13,
    model=NS(hidden=64, members=3),
    training=NS(lr=1e-3, input_noise=0.01, epochs=5, batch=100),
)


def pendulum_transitions(n, rng):
    theta = rng.uniform(-np.pi, np.pi, n)
    omega = rng.uniform(-4, 4, n)
    torque = rng.uniform(-2, 2, n)
    domega = 0.05 * (15 * np.sin(theta) + 3 * torque)
    dtheta = 0.05 * (omega + domega)
    state = np.stack([np.cos(theta), np.sin(theta), omega / 4, torque / 2], 1)
    target = np.stack([dtheta, domega], 1)
    return torch.tensor(state, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)


class WorldModel(nn.Module):
    def __init__(self, config, scale):
        super().__init__()
        self.architecture = config.model
        self.training = config.training
        self.register_buffer("scale", scale)
        h = self.architecture.hidden
        self.members = nn.ModuleList(
            nn.Sequential(nn.Linear(4, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 2))
            for _ in range(self.architecture.members)
        )

    def forward(self, x):
        return torch.stack([m(x) for m in self.members]) * self.scale

    def loss(self, x, y):
        x = x + self.training.input_noise * torch.randn_like(x)
        return ((self(x) - y) / self.scale).square().mean()

    @torch.no_grad()
    def score(self, x, y):
        pred = self(x)
        return (pred.mean(0) - y).square().mean().sqrt().item(), pred.std(0).mean().item()


def main():
    torch.manual_seed(CONFIG.seed)
    rng = np.random.default_rng(CONFIG.seed)
    x_tr, y_tr = pendulum_transitions(3000, rng)
    x_va, y_va = pendulum_transitions(500, rng)
    model = WorldModel(CONFIG, y_tr.std(0))
    settings = CONFIG.training
    opt = torch.optim.Adam(model.parameters(), lr=settings.lr)
    for epoch in range(settings.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x_tr)).split(settings.batch):
            loss = model.loss(x_tr[idx], y_tr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        model.eval()
        rmse, spread = model.score(x_va, y_va)
        print(f"epoch {epoch} loss {total / len(x_tr):.4f} rmse {rmse:.4f} spread {spread:.4f}")
    torch.save(model.state_dict(), "/tmp/world_w1.pt")


if __name__ == "__main__":
    main()
