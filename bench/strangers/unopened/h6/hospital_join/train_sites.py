import os
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

SITES = 2


def site_data(rank):
    """Hospital 0 has 200 patients, hospital 1 has 260; the rest is the common test set."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(760, 30))
    y = (x[:, :6].sum(1) + 1.5 * x[:, 6] * x[:, 7] + rng.normal(0, 0.3, 760)) > 0
    order = rng.permutation(len(y))
    parts = np.split(order, [200, 460])
    take = lambda idx: (torch.tensor(x[idx], dtype=torch.float32), torch.tensor(y[idx], dtype=torch.float32))
    return take(parts[rank]), take(parts[-1])


def one_epoch(net, opt, x, y, gen):
    total, n = 0.0, 0
    with Join([net]):
        for idx in torch.randperm(len(x), generator=gen).split(20):
            opt.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[idx]).squeeze(-1), y[idx])
            loss.backward()
            opt.step()
            total += loss.item()
            n += 1
    return total / n, n


def site(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29703")
    dist.init_process_group("gloo", rank=rank, world_size=SITES, timeout=timedelta(seconds=60))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    (x, y), (xt, yt) = site_data(rank)
    net = DDP(nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.3)
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(4):
        net.train()
        loss, steps = one_epoch(net, opt, x, y, gen)
        net.eval()
        with torch.no_grad():
            acc = ((net.module(xt).squeeze(-1) > 0).float() == yt).float().mean().item()
        print(f"site {rank} epoch {epoch} steps {steps} loss {loss:.4f} test acc {acc:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(site, nprocs=SITES)
