"""Estimate rider comfort from accelerometer traces."""
import logging
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger("gforce")


class RunningStats:
    """Welford statistics per axis, fed ride by ride while the recordings are read."""

    def __init__(self, n_axes):
        self.n = 0
        self.mean = np.zeros(n_axes)
        self.m2 = np.zeros(n_axes)

    def update(self, ride):
        for row in ride:
            self.n += 1
            delta = row - self.mean
            self.mean += delta / self.n
            self.m2 += delta * (row - self.mean)

    def normaliser(self):
        mean = torch.as_tensor(self.mean)
        std = torch.as_tensor(np.sqrt(self.m2 / (self.n - 1)))

        def apply(x):
            return (x - mean) / std

        return apply


def record(n_rides, length=50, seed=0):
    rng = np.random.default_rng(seed)
    rides = np.empty((n_rides, length, 3), dtype=np.float32)
    comfort = np.empty(n_rides, dtype=np.float32)
    t = np.linspace(0, 1, length)
    for i in range(n_rides):
        amp, freq = rng.uniform(0.5, 4), rng.uniform(1, 6)
        rides[i, :, 0] = amp * np.sin(2 * math.pi * freq * t) + 0.2 * rng.standard_normal(length)
        rides[i, :, 1] = 0.5 * amp * np.cos(2 * math.pi * freq * t) + 0.2 * rng.standard_normal(length)
        rides[i, :, 2] = 9.81 + 0.3 * rng.standard_normal(length)
        comfort[i] = 5 - amp - 0.3 * freq
    return rides, comfort


class ComfortNet(nn.Module):
    def __init__(self, axes=3, hidden=32):
        super().__init__()
        self.gru = nn.GRU(axes, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.out(self.gru(x)[1][-1]).squeeze(-1)


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    torch.manual_seed(0)
    rides, comfort = record(300)
    test_rides, test_comfort = record(80, seed=1)

    stats = RunningStats(n_axes=3)
    for ride in rides[:60]:
        stats.update(ride)
    normalise = stats.normaliser()

    train = DataLoader(TensorDataset(torch.from_numpy(rides), torch.from_numpy(comfort)), 30, shuffle=True)
    test_x, test_y = torch.from_numpy(test_rides), torch.from_numpy(test_comfort)
    net = ComfortNet()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(8):
        net.train()
        for x, y in train:
            loss = nn.functional.mse_loss(net(normalise(x)), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
        net.eval()
        with torch.no_grad():
            mae = (net(normalise(test_x)) - test_y).abs().mean().item()
        logger.info("epoch %d train mse %.3f test mae %.3f", epoch, loss.item(), mae)


if __name__ == "__main__":
    main()
