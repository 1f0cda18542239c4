import datetime
import os
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from trainer import EcgTrainer


def beats(n, seed, classes=4, length=96):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    t = np.linspace(0, 1, length)
    x = np.zeros((n, 1, length), np.float32)
    for i, c in enumerate(y):
        centre = 0.5 + rng.normal(0, 0.05)
        width = 0.02 + 0.02 * c
        x[i, 0] = np.exp(-((t - centre) / width) ** 2) - 0.3 * (c % 2) * np.exp(-((t - centre - 0.15) / 0.05) ** 2)
    x += rng.normal(0, 0.25, x.shape)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def main():
    if "WORLD_SIZE" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29588")
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6))
    torch.manual_seed(0)
    train, val = beats(800, 1), beats(240, 2)
    train_loader = DataLoader(train, 40, sampler=DistributedSampler(train, seed=4))
    val_loader = DataLoader(val, 60, sampler=DistributedSampler(val, shuffle=False))
    net = nn.Sequential(
        nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.MaxPool1d(4),
        nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(128, 4),
    )
    out = os.path.join(tempfile.gettempdir(), "ecg_best.pt")
    EcgTrainer(net, train_loader, val_loader, lr=2e-3, out=out, n_classes=4).fit(epochs=4)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
