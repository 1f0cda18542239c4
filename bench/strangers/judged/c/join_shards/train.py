"""Hospitals hold different amounts of data; DDP's Join lets the short ones shadow the remaining collectives.

    torchrun --standalone --nproc_per_node=2 train.py      (or plain `python train.py` for one process)
"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

SITE_ROWS = [480, 352, 640, 288]


def site(index, rows, generator):
    x = torch.randn(rows, 10, generator=generator) + 0.1 * index
    logit = 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3]
    y = (torch.rand(rows, generator=generator) < torch.sigmoid(logit)).float()
    return x, y


def minibatches(x, y, size, generator):
    for part in torch.randperm(len(y), generator=generator).split(size):
        yield x[part], y[part]


def pooled_accuracy(net, x, y):
    """every rank scores its own held-out rows, the counts are summed over all ranks"""
    net.eval()
    with torch.no_grad():
        hit = ((net(x).squeeze(-1) > 0) == y.bool()).sum()
    counts = torch.tensor([float(hit), float(len(y))])
    dist.all_reduce(counts, op=dist.ReduceOp.SUM)
    return (counts[0] / counts[1]).item()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    gen = torch.Generator().manual_seed(50 + rank)
    x, y = site(rank, SITE_ROWS[rank % len(SITE_ROWS)], gen)
    x_test, y_test = site(rank, 100, gen)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
    ddp = DDP(net)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.2)
    bce = nn.BCEWithLogitsLoss()

    for epoch in range(8):
        ddp.train()
        steps = 0
        with Join([ddp]):
            for xb, yb in minibatches(x, y, 32, gen):
                opt.zero_grad()
                bce(ddp(xb).squeeze(-1), yb).backward()
                opt.step()
                steps += 1
        acc = pooled_accuracy(net, x_test, y_test)
        if rank == 0:
            print(f"epoch {epoch}: {steps} local steps, pooled test accuracy {acc:.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
