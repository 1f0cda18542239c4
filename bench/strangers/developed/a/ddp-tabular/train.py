"""
Distributed training of a residual MLP.

    torchrun --nproc_per_node=2 train.py          # several processes
    python train.py                               # one process, no process group
"""
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM = 2
EPOCHS = 4


def setup():
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local)
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    return world, rank, torch.device("cuda", local) if cuda else torch.device("cpu")


def friedman(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 10, generator=g)
    y = 10 * torch.sin(3.1416 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, y + torch.randn(n, generator=g)


class ResMLP(nn.Module):
    def __init__(self, d=10, h=64, depth=2):
        super().__init__()
        self.inp = nn.Linear(d, h)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(h), nn.Linear(h, h), nn.GELU(), nn.Linear(h, h))
                                    for _ in range(depth))
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h).squeeze(-1)


def reduce_mean(total, count, world):
    t = torch.tensor([total, count], dtype=torch.float64)
    if world > 1:
        t = t.cuda() if torch.cuda.is_available() else t
        dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    world, rank, device = setup()
    torch.manual_seed(0)                       # the same weights everywhere (DDP broadcasts anyway)
    x, y = friedman(2048, 1)
    mean, std = y.mean(), y.std()
    xv, yv = friedman(512, 2)
    train_set, val_set = TensorDataset(x, (y - mean) / std), TensorDataset(xv, (yv - mean) / std)

    sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=0)
    train = DataLoader(train_set, batch_size=32, sampler=sampler)
    val = DataLoader(val_set, batch_size=128, sampler=DistributedSampler(val_set, world, rank, shuffle=False))

    raw = ResMLP().to(device)
    net = DDP(raw, device_ids=[device.index] if device.type == "cuda" else None) if world > 1 else raw
    opt = torch.optim.AdamW(raw.parameters(), lr=3e-3)
    amp = device.type == "cuda"
    scaler = torch.amp.GradScaler(device.type, enabled=amp)
    torch.manual_seed(1000 + rank)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        net.train()
        n_batches = len(train)
        for i, (xb, yb) in enumerate(train):
            xb, yb = xb.to(device), yb.to(device)
            start = i - i % ACCUM
            in_group = min(ACCUM, n_batches - start)
            last = i - start == in_group - 1
            # no gradient exchange until the last micro-batch of the group
            with nullcontext() if last or world == 1 else net.no_sync():
                with torch.autocast(device.type, dtype=torch.float16, enabled=amp):
                    pred = net(xb)
                loss = nn.functional.mse_loss(pred.float(), yb) / in_group
                scaler.scale(loss).backward()
            if last:
                scaler.unscale_(opt)
                nn.utils.clip_grad_norm_(raw.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
                opt.zero_grad(set_to_none=True)

        net.eval()
        se, n = 0.0, 0
        with torch.no_grad():
            for xb, yb in val:
                se += (raw(xb.to(device)) - yb.to(device)).pow(2).sum().item()
                n += len(yb)
        mse = reduce_mean(se, n, world)
        if rank == 0:
            print(f"epoch {epoch}: val rmse {mse ** 0.5 * std.item():.3f}")

    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
