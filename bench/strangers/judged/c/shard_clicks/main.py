import argparse
import datetime as dt
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from shards import N_FEAT, DayShards, day


def build():
    return nn.Sequential(nn.Linear(N_FEAT, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0))


def holdout_accuracy(net, days):
    net.eval()
    with torch.no_grad():
        hit = [((net(x) > 0) == y.bool()).float() for x, y in map(day, days)]
    return torch.cat(hit).mean().item()


def worker(rank, world, rendezvous, opts):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world,
                            timeout=dt.timedelta(minutes=opts.timeout_min))
    torch.manual_seed(opts.seed + rank)
    net = DistributedDataParallel(build())
    opt = torch.optim.Adagrad(net.parameters(), lr=0.05)
    bce = nn.BCEWithLogitsLoss()
    loader = DataLoader(DayShards(list(range(6)), rank, world, opts.batch), batch_size=None)

    for epoch in range(opts.epochs):
        net.train()
        seen = 0
        for x, y in loader:
            opt.zero_grad()
            loss = bce(net(x), y)
            loss.backward()
            opt.step()
            seen += len(y)
        print(f"[{rank}] epoch {epoch} rows {seen} last loss {loss.item():.4f}", flush=True)
        dist.barrier()

    if rank == 0:
        print("held-out days:", holdout_accuracy(net.module, days=[6, 7]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--timeout-min", type=float, default=10)
    opts = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        mp.spawn(worker, args=(opts.world, f"{tmp}/store", opts), nprocs=opts.world)
