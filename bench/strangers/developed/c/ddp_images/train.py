"""torchrun --nproc_per_node=2 train.py"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29541")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world)
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        return rank, world, torch.device("cuda", torch.cuda.current_device())
    return rank, world, torch.device("cpu")


def digits():
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(d.target)
    perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return TensorDataset(x[perm[:1400]], y[perm[:1400]]), TensorDataset(x[perm[1400:]], y[perm[1400:]])


def net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 16, 10),
    )


def global_mean(total, count, device):
    """Sum over all processes, then divide."""
    t = torch.tensor([total, count], dtype=torch.float64, device=device)
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return (t[0] / t[1]).item()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    hits = n = 0
    for x, y in loader:
        hits += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
        n += len(y)
    return global_mean(hits, n, device)


def main(epochs=3):
    rank, world, device = setup()
    torch.manual_seed(100 + rank)
    train_set, val_set = digits()
    sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=0)
    train_dl = DataLoader(train_set, 64, sampler=sampler)
    val_dl = DataLoader(val_set, 128)

    model = DDP(net().to(device), device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    crit = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        total = count = 0
        for x, y in train_dl:
            x, y = x.to(device), y.to(device)
            opt.zero_grad(set_to_none=True)
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            count += len(y)
        train_loss = global_mean(total, count, device)
        if rank == 0:
            acc = validate(model.module, val_dl, device)
            print(f"epoch {epoch} train {train_loss:.4f} val acc {acc:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
