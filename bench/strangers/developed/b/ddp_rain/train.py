"""Rain nowcasting on tabular station data, DDP.

    torchrun --nproc_per_node=2 train.py --ckpt run.pt      (start again with the same command to continue)
"""
import argparse
import contextlib
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29533")
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    local = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
        return torch.device("cuda", local)
    return torch.device("cpu")


def stations(n, seed):
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 12)).astype(np.float32)
    rain = (x[:, 0] * x[:, 1] + 0.7 * x[:, 2] + 0.3 * g.normal(size=n) > 0.4).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(rain))


def rng_state():
    s = {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        s["cuda"] = torch.cuda.get_rng_state()
    return s


def set_rng_state(s):
    torch.set_rng_state(s["torch"])
    np.random.set_state(s["numpy"])
    random.setstate(s["python"])
    if "cuda" in s:
        torch.cuda.set_rng_state(s["cuda"])


def save(path, net, opt, sched, epoch):
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, rng_state())
    if dist.get_rank() == 0:
        torch.save(
            {"net": net.module.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
             "next_epoch": epoch + 1, "rng": states}, path + ".tmp")
        os.replace(path + ".tmp", path)
    dist.barrier()


def validate(net, loader, device, n_total):
    """Rows are split over the processes without repetition, hence plain sums."""
    net.eval()
    tally = torch.zeros(2, device=device, dtype=torch.float64)
    with torch.no_grad():
        for x, y in loader:
            guess = net.module(x.to(device)).squeeze(1) > 0
            tally += torch.tensor([(guess.cpu() == y.bool()).sum(), len(y)], device=device, dtype=torch.float64)
    dist.all_reduce(tally)
    assert int(tally[1]) == n_total
    return (tally[0] / tally[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt", default=None)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--accum", type=int, default=2)
    args = ap.parse_args()
    device = setup()
    rank, world = dist.get_rank(), dist.get_world_size()
    for f in (random.seed, np.random.seed, torch.manual_seed):
        f(1000 + rank)

    train_set, val_set = stations(1024, 1), stations(301, 2)
    sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=7, drop_last=True)
    train = DataLoader(train_set, 32, sampler=sampler, drop_last=True)
    mine = torch.utils.data.Subset(val_set, range(rank, len(val_set), world))
    val = DataLoader(mine, 128)

    net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    net = DDP(net.to(device), device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
    updates = -(-len(train) // args.accum)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=updates * args.epochs)
    first = 0
    if args.ckpt and os.path.exists(args.ckpt):
        ck = torch.load(args.ckpt, map_location="cpu", weights_only=False)
        net.module.load_state_dict(ck["net"])
        opt.load_state_dict(ck["opt"])
        sched.load_state_dict(ck["sched"])
        first = ck["next_epoch"]
        set_rng_state(ck["rng"][rank])

    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        net.train()
        n = len(train)
        for i, (x, y) in enumerate(train):
            last_of_group = (i + 1) % args.accum == 0 or i + 1 == n
            group = args.accum if i < n - n % args.accum else n % args.accum
            with contextlib.nullcontext() if last_of_group else net.no_sync():
                loss = nn.functional.binary_cross_entropy_with_logits(net(x.to(device)).squeeze(1), y.to(device))
                (loss / group).backward()
            if last_of_group:
                opt.step()
                sched.step()
                opt.zero_grad(set_to_none=True)
        acc = validate(net, val, device, len(val_set))
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.4f}", flush=True)
        if args.ckpt:
            save(args.ckpt, net, opt, sched, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
