"""torchrun --nproc_per_node=N train.py --out runs/a [--epochs 8]; call again to continue."""
import argparse
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import state


class Chirps(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rate = 4 + 16 * torch.rand(n, generator=g)
        t = torch.linspace(0, 1, 64)
        self.x = torch.sin(self.rate[:, None] * t ** 2 * 3) + 0.2 * torch.randn(n, 64, generator=g)
        self.y = (self.rate - 12) / 5

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i][None], self.y[i]


def net():
    return nn.Sequential(nn.Conv1d(1, 16, 9, 2, 4), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 9, 2, 4),
                         nn.BatchNorm1d(32), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(512, 1), nn.Flatten(0))


@torch.no_grad()
def validate(ddp, data, rank, world, device):
    """each rank scores its own, non-repeating slice"""
    ddp.eval()
    acc = torch.zeros(2, dtype=torch.float64, device=device)
    for x, y in DataLoader(torch.utils.data.Subset(data, range(rank, len(data), world)), 64):
        err = ddp.module(x.to(device)) - y.to(device)
        acc += torch.stack([err.pow(2).sum().double(), torch.tensor(float(len(y)), device=device).double()])
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def run(out, epochs, stop=None):
    rank, world = dist.get_rank(), dist.get_world_size()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if gpu else torch.device("cpu")
    torch.manual_seed(19)
    model = net()
    model = DDP((nn.SyncBatchNorm.convert_sync_batchnorm(model) if gpu else model).to(device),
                device_ids=[device.index] if gpu else None)
    for f in (random.seed, np.random.seed, torch.manual_seed):
        f(19 + 1000 * rank)                      # dropout noise differs per rank
    train, val = Chirps(600, 1), Chirps(150, 2)
    sampler = DistributedSampler(train, seed=19, drop_last=True)
    loader = DataLoader(train, 20, sampler=sampler, drop_last=True)
    opt = torch.optim.AdamW(model.parameters(), 3e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, epochs=epochs, steps_per_epoch=len(loader))
    scaler = torch.amp.GradScaler("cuda", enabled=gpu)
    parts = {"opt": opt, "sched": sched, "scaler": scaler}
    ckpt, first, best = out / "last.pt", 0, float("inf")
    if ckpt.exists():
        blob = state.load(ckpt, model, parts)
        first, best = blob["epoch"], blob["best"]
    for epoch in range(first, min(epochs, stop or epochs)):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=torch.float16, enabled=gpu):
                loss = nn.functional.smooth_l1_loss(model(x.to(device)).float(), y.to(device))
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
        mse = validate(model, val, rank, world, device)
        best = min(best, mse)
        state.save(ckpt, model, parts, epoch=epoch + 1, best=best)
        if rank == 0:
            print(f"epoch {epoch}: val mse {mse:.4f} (best {best:.4f})", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", type=Path)
    ap.add_argument("--epochs", type=int, default=6)
    a = ap.parse_args()
    for k, v in dict(MASTER_ADDR="localhost", MASTER_PORT="29688", RANK="0", WORLD_SIZE="1").items():
        os.environ.setdefault(k, v)
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if a.out:
        if dist.get_rank() == 0:
            a.out.mkdir(parents=True, exist_ok=True)
        dist.barrier()
        run(a.out, a.epochs)
    else:                                        # demo: stop half-way, then continue (one process)
        with tempfile.TemporaryDirectory() as d:
            run(Path(d), a.epochs, stop=a.epochs // 2)
            run(Path(d), a.epochs)
    dist.destroy_process_group()
