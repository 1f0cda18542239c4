"""CTR model on an endless click stream. Works with python or torchrun."""
import os
from itertools import islice

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

N_USERS, N_ADS = 200, 50


class ClickStream(IterableDataset):
    """Every process reads its own partition of the topic, each pass continues where the last ended."""

    def __init__(self, partition, events):
        self.rng = np.random.default_rng([2024, partition])
        taste = np.random.default_rng(0)
        self.u, self.a = taste.normal(size=(N_USERS, 3)), taste.normal(size=(N_ADS, 3))
        self.events = events

    def __iter__(self):
        for _ in range(self.events):
            u, a = int(self.rng.integers(N_USERS)), int(self.rng.integers(N_ADS))
            p = 1 / (1 + np.exp(-1.5 * self.u[u] @ self.a[a]))
            yield u, a, np.float32(self.rng.random() < p)


class CTR(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.u, self.a = nn.Embedding(N_USERS, d), nn.Embedding(N_ADS, d)
        nn.init.normal_(self.u.weight, std=0.3)
        nn.init.normal_(self.a.weight, std=0.3)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, u, a):
        return (self.u(u) * self.a(a)).sum(-1) + self.bias


def log_loss(net, stream, n=2000):
    net.eval()
    u, a, y = map(torch.tensor, zip(*islice(iter(stream), n)))
    with torch.no_grad():
        z = net(u, a)
    net.train()
    return nn.functional.binary_cross_entropy_with_logits(z, y).item(), ((z > 0) == (y > 0.5)).float().mean().item()


def main():
    for k, v in dict(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29702").items():
        os.environ.setdefault(k, v)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    loader = DataLoader(ClickStream(partition=rank, events=6400), batch_size=128)
    net = DDP(CTR())
    opt = torch.optim.Adam(net.parameters(), lr=0.02)
    holdout = ClickStream(partition=10_000, events=100_000)
    for window in range(5):
        for u, a, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(net(u, a), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            ll, acc = log_loss(net.module, holdout)
            print(f"window {window} train {loss.item():.4f} holdout logloss {ll:.4f} acc {acc:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
