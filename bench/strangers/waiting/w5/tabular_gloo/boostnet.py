"""
Wide MLP on the transaction features, data parallel over the cores of one box.

    torchrun --nproc_per_node=2 boostnet.py
"""
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class EarlyStopping:
    def __init__(self, patience=3, min_delta=1e-3):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def __call__(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def load():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 30)).astype(np.float32)
    w = rng.normal(size=30)
    y = ((X @ w + np.sin(3 * X[:, 0]) * 2 + rng.normal(scale=2.0, size=6000)) > 0).astype(np.float32)
    cut = 4800
    T = torch.from_numpy
    return TensorDataset(T(X[:cut]), T(y[:cut])), TensorDataset(T(X[cut:]), T(y[cut:]))


def build():
    return nn.Sequential(
        nn.Linear(30, 256), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(256, 1))


@torch.no_grad()
def shard_loss(model, loader, criterion):
    model.eval()
    total, n = 0.0, 0
    for x, y in loader:
        total += criterion(model(x).squeeze(1), y).item() * len(y)
        n += len(y)
    return total / n


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    train, valid = load()
    train_sampler = DistributedSampler(train, shuffle=True, seed=0)
    valid_sampler = DistributedSampler(valid, shuffle=False)
    train_loader = DataLoader(train, batch_size=64, sampler=train_sampler)
    valid_loader = DataLoader(valid, batch_size=256, sampler=valid_sampler)

    net = build()
    model = DistributedDataParallel(net)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    stopper = EarlyStopping(patience=3)

    for epoch in range(100):
        train_sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
        val = shard_loss(net, valid_loader, criterion)
        if rank == 0:
            print(f"epoch {epoch:3d} train {loss.item():.4f} valid {val:.4f}", flush=True)
        if stopper(val):
            print(f"rank {rank}: early stopping at epoch {epoch}, best {stopper.best:.4f}", flush=True)
            break

    if rank == 0:
        torch.save(net.state_dict(), "/tmp/boostnet.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
