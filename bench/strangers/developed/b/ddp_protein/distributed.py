import os
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def process_group():
    """Joins the group described by torchrun; a lone process makes a group of its own."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", rank=rank, world_size=world)
    try:
        yield rank, world
    finally:
        dist.destroy_process_group()


def mean_over_ranks(value, weight):
    t = torch.tensor([value * weight, weight], dtype=torch.float64)
    if torch.cuda.is_available():
        t = t.cuda()
    dist.all_reduce(t)
    return (t[0] / t[1]).item()
