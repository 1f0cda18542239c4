"""Demand quantiles from a stream that every worker reads in its own stride.

torchrun --nproc_per_node 2 train.py
"""
import itertools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

QUANTILES = (0.1, 0.5, 0.9)


def record(i, seed):
    g = torch.Generator().manual_seed(seed * 1_000_003 + i)
    x = torch.rand(5, generator=g) * 2 - 1
    y = 2 * x[0] + x[1] * x[2] + (0.2 + 0.3 * x[3].abs()) * torch.randn((), generator=g)
    return x, y


class Stream(IterableDataset):
    """Record i belongs to rank i % world; a new epoch permutes the records alike on all ranks."""

    def __init__(self, n, rank, world, seed, shuffled):
        self.n = n - n % world
        self.rank, self.world, self.seed, self.shuffled = rank, world, seed, shuffled
        self.epoch = 0

    def __iter__(self):
        order = range(self.n)
        if self.shuffled:
            order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        for i in itertools.islice(order, self.rank, None, self.world):
            yield record(i, self.seed)


def pinball(pred, y, q):
    """pred: batch x quantiles, y: batch"""
    diff = y.unsqueeze(1) - pred
    return torch.maximum(q * diff, (q - 1) * diff).mean()


def evaluate(net, loader, q, device):
    net.eval()
    sums = torch.zeros(2 + len(q), device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            p = net(x)
            sums[0] += pinball(p, y, q) * len(y)
            sums[1] += len(y)
            sums[2:] += (y.unsqueeze(1) < p).float().sum(0)
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item(), (sums[2:] / sums[1]).tolist()


def main():
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    q = torch.tensor(QUANTILES, device=device)
    train = Stream(3000, rank, world, seed=1, shuffled=True)
    train_dl = DataLoader(train, batch_size=50)
    val_dl = DataLoader(Stream(800, rank, world, seed=2, shuffled=False), batch_size=100)
    core = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, len(QUANTILES)))
    net = DistributedDataParallel(core.to(device), device_ids=[device.index] if cuda else None)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(5):
        train.epoch = epoch
        net.train()
        for x, y in train_dl:
            loss = pinball(net(x.to(device)), y.to(device), q)
            opt.zero_grad()
            loss.backward()
            opt.step()
        value, cover = evaluate(net, val_dl, q, device)
        if rank == 0:
            print(f"epoch {epoch} pinball {value:.4f} coverage {[round(c, 2) for c in cover]}", flush=True)
    if rank == 0:
        torch.save(net.module.state_dict(), "/tmp/quantiles_w1.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
