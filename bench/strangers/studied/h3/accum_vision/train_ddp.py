"""Small CNN on digits. Works alone or with: torchrun --nproc_per_node=2 train_ddp.py"""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MICRO, ACCUM, EPOCHS = 16, 4, 3
DISTRIBUTED = int(os.environ.get("WORLD_SIZE", "1")) > 1


def setup():
    if DISTRIBUTED:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank() if DISTRIBUTED else 0
    if torch.cuda.is_available():
        local = int(os.environ.get("LOCAL_RANK", "0"))
        torch.cuda.set_device(local)
        return rank, torch.device("cuda", local)
    return rank, torch.device("cpu")


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )


def main():
    rank, device = setup()
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    train, test = TensorDataset(X[:1400], y[:1400]), (X[1400:].to(device), y[1400:].to(device))
    sampler = DistributedSampler(train, shuffle=True) if DISTRIBUTED else None
    loader = DataLoader(train, MICRO, sampler=sampler, shuffle=sampler is None)
    net = build().to(device)
    model = DDP(net) if DISTRIBUTED else net
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss(reduction="sum")

    for epoch in range(EPOCHS):
        if sampler is not None:
            sampler.set_epoch(epoch)
        model.train()
        seen, total = 0, torch.zeros((), device=device)
        opt.zero_grad()
        for i, (xb, yb) in enumerate(loader, start=1):
            xb, yb = xb.to(device), yb.to(device)
            flush = i % ACCUM == 0 or i == len(loader)
            quiet = model.no_sync() if DISTRIBUTED and not flush else contextlib.nullcontext()
            with quiet:
                loss = criterion(model(xb), yb)
                loss.backward()
            seen += len(xb)
            total += loss.detach()
            if flush:
                for p in model.parameters():
                    p.grad.div_(seen)
                opt.step()
                opt.zero_grad()
                seen = 0
        if rank == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(test[0]).argmax(1) == test[1]).float().mean()
            print(f"epoch {epoch} summed loss {total.item():.1f} test acc {acc.item():.3f}")
    if DISTRIBUTED:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
