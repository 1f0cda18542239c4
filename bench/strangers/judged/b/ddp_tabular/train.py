"""torchrun --nproc_per_node=4 train.py   (or plain `python train.py` for one process)"""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data import loaders


@dataclass
class Cfg:
    seed: int = 77
    batch: int = 32
    epochs: int = 4
    lr: float = 2e-3
    workers: int = 0


def setup():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29641")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo", rank=rank, world_size=world)
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    return rank, world, torch.device("cuda" if gpu else "cpu")


def reduce_sum(*values, device):
    t = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(t)
    return t.tolist()


def main(cfg=Cfg()):
    rank, world, device = setup()
    torch.manual_seed(cfg.seed)
    train_loader, sampler, val_loader = loaders(cfg, rank, world)
    net = nn.Sequential(nn.Linear(20, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 4)).to(device)
    net = DDP(net, device_ids=[device.index] if device.index is not None else None)
    opt = torch.optim.AdamW(net.parameters(), cfg.lr)
    ce = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        net.train()
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            loss = ce(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        hit = n = nll = 0
        with torch.no_grad():
            for x, y in val_loader:
                x, y = x.to(device), y.to(device)
                z = net.module(x)
                nll += ce(z, y).item() * len(y)
                hit += (z.argmax(1) == y).sum().item()
                n += len(y)
        nll, hit, n = reduce_sum(nll, hit, n, device=device)
        if rank == 0:
            print(f"epoch {epoch}: val nll {nll / n:.4f} acc {hit / n:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
