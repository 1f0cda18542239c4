import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from engine import Engine, Task


class NeuralODE(Task):
    """dx/dt = f(x), integrated with RK4; the loss compares the end point with the observed one."""

    def __init__(self, width=32, lr=5e-3):
        super().__init__()
        self.lr = lr
        self.f = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def rollout(self, x, h=0.1, steps=5):
        for _ in range(steps):
            k1 = self.f(x)
            k2 = self.f(x + h / 2 * k1)
            k3 = self.f(x + h / 2 * k2)
            k4 = self.f(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x

    def loss(self, batch):
        start, end = batch
        return (self.rollout(start) - end).square().mean()

    def configure_optimizer(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr, betas=(0.9, 0.999))


def pendulum(n, seed=4, h=0.01, steps=50):
    g = torch.Generator().manual_seed(seed)
    x0 = torch.rand(n, 2, generator=g) * 3 - 1.5
    x = x0.clone()
    for _ in range(steps):
        v = x[:, 1] - h * torch.sin(x[:, 0])
        x = torch.stack([x[:, 0] + h * v, v], 1)
    return TensorDataset(x0, x)


if __name__ == "__main__":
    torch.manual_seed(4)
    train, val = random_split(pendulum(600), [480, 120], generator=torch.Generator().manual_seed(0))
    workdir = os.environ.get("WORKDIR") or tempfile.mkdtemp()
    engine = Engine(NeuralODE(), workdir, max_epochs=int(os.environ.get("EPOCHS", 6)))
    engine.resume().fit(DataLoader(train, 32, shuffle=True), DataLoader(val, 60))
