import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

MODELS, HOOKS = {}, {"epoch_start": [], "epoch_end": []}


def model(name):
    return lambda f: MODELS.setdefault(name, f)


def hook(event):
    def deco(f):
        HOOKS[event].append(f)
        return f
    return deco


def fire(event, **ctx):
    for f in HOOKS[event]:
        f(**ctx)


@model("mlp")
def mlp(width=64):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


@model("cnn")
def cnn(width=16):
    return nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8 * width, 10))


@hook("epoch_start")
def reshuffle(loader, epoch, **_):
    if hasattr(loader, "set_epoch"):
        loader.set_epoch(epoch)


@hook("epoch_start")
def train_mode(net, **_):
    net.train()


@hook("epoch_end")
def report(net, held, epoch, rank, world, **_):
    net.eval()
    stat = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for x, y in held:
            stat += torch.tensor([(net.module(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
    dist.all_reduce(stat)
    if rank == 0:
        print(f"[{world} proc] epoch {epoch} held-out accuracy {(stat[0] / stat[1]).item():.4f}", flush=True)


@contextmanager
def process_group():
    env = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29652", "RANK": "0", "WORLD_SIZE": "1"}
    for k, v in env.items():
        os.environ.setdefault(k, v)
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def data(rank, world, batch, seed):
    d = load_digits()
    ds = TensorDataset(torch.tensor(d.images / 16, dtype=torch.float32), torch.tensor(d.target))
    perm = torch.randperm(len(ds), generator=torch.Generator().manual_seed(seed)).tolist()
    fit, held = Subset(ds, perm[400:]), Subset(ds, perm[:400][rank::world])
    sampler = DistributedSampler(fit, num_replicas=world, rank=rank, shuffle=True, seed=seed, drop_last=True)
    return DataLoader(fit, batch_size=batch, sampler=sampler, drop_last=True), DataLoader(held, batch_size=200)


def main(arch=os.environ.get("ARCH", "cnn"), epochs=5, batch=32, lr=4e-3, seed=5):
    with process_group() as (rank, world):
        torch.manual_seed(seed)
        loader, held = data(rank, world, batch, seed)
        net = DistributedDataParallel(MODELS[arch]())
        opt = torch.optim.AdamW(net.parameters(), lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs * len(loader))
        for epoch in range(epochs):
            fire("epoch_start", loader=loader, net=net, epoch=epoch)
            for x, y in loader:
                opt.zero_grad()
                F.cross_entropy(net(x), y, label_smoothing=0.05).backward()
                opt.step()
                sched.step()
            fire("epoch_end", net=net, held=held, epoch=epoch, rank=rank, world=world)


if __name__ == "__main__":
    main()
