"""Hospital network: each process owns the patients of its own hospitals, so the amounts of data differ.

    torchrun --nproc_per_node=3 train.py
"""
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

HOSPITALS = {"north": 420, "south": 1310, "harbour": 260, "hill": 775, "lake": 98}


def patients(name, n):
    g = torch.Generator().manual_seed(sum(map(ord, name)))
    x = torch.randn(n, 8, generator=g)
    risk = (x[:, 0] * x[:, 1] + x[:, 2] > 0).float()
    return x, risk


def my_data(rank, world):
    names = sorted(HOSPITALS)[rank::world]
    xs, ys = zip(*(patients(n, HOSPITALS[n]) for n in names))
    x, y = torch.cat(xs), torch.cat(ys)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(5))
    cut = int(0.8 * len(x))
    pick = lambda i: TensorDataset(x[i], y[i])
    return pick(order[:cut]), pick(order[cut:])


def main():
    rank, world = int(os.getenv("RANK", 0)), int(os.getenv("WORLD_SIZE", 1))
    many = world > 1
    if many:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, held = my_data(rank, world)
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DDP(net) if many else net
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    bce = nn.BCEWithLogitsLoss()
    loader = DataLoader(train, 32, shuffle=True, generator=torch.Generator().manual_seed(rank))

    for epoch in range(4):
        model.train()
        with Join([model]) if many else nullcontext():
            for x, y in loader:
                opt.zero_grad()
                bce(model(x).squeeze(1), y).backward()
                opt.step()

        net.eval()
        with torch.no_grad():
            x, y = held.tensors
            stats = torch.tensor([((net(x).squeeze(1) > 0) == (y > 0.5)).sum().item(), len(y)], dtype=torch.float64)
        if many:
            dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch}: accuracy over all hospitals {stats[0] / stats[1]:.3f} ({int(stats[1])} patients)", flush=True)

    if many:
        dist.barrier()
        if rank == 0:
            torch.save(net.state_dict(), os.getenv("OUT", "/dev/null"))
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
