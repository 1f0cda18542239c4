"""Post-local SGD: workers go their own way for H steps, then average.  torchrun --nproc_per_node=2 local_sgd.py"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def setup():
    for k, v in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29711")):
        os.environ.setdefault(k, v)
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def agree(net, world):
    flat = parameters_to_vector(net.parameters()).detach()
    dist.all_reduce(flat)
    vector_to_parameters(flat / world, net.parameters())


def drift(net, rank):
    flat = parameters_to_vector(net.parameters()).detach()
    ref = flat.clone()
    dist.broadcast(ref, src=0)
    far = (flat - ref).norm()
    dist.all_reduce(far, op=dist.ReduceOp.MAX)
    return far.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=20)
    ap.add_argument("--local-steps", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--batch", type=int, default=32)
    a = ap.parse_args()
    rank, world = setup()

    x, y = make_classification(4000, 24, n_informative=10, n_classes=3, class_sep=1.4, random_state=0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    test_x, test_y = x[3200:], y[3200:]
    x, y = x[:3200][rank::world], y[:3200][rank::world]

    torch.manual_seed(100 + rank)
    net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 3))
    for p in net.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.SGD(net.parameters(), lr=a.lr)

    for r in range(1, a.rounds + 1):
        for _ in range(a.local_steps):
            idx = torch.randint(len(x), (a.batch,))
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        before = drift(net, rank)
        agree(net, world)
        after = drift(net, rank)
        if r % 5 == 0 and rank == 0:
            with torch.no_grad():
                acc = (net(test_x).argmax(1) == test_y).float().mean().item()
            print(f"round {r} loss {loss.item():.4f} drift {before:.3f} -> {after:.1e} test acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
