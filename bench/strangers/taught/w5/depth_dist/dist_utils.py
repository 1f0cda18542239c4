import os

import torch
import torch.distributed as dist


def init():
    dist.init_process_group(backend="nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return local_rank


def is_main():
    return dist.get_rank() == 0


class MeanMetric:
    """Running mean, averaged over the processes when it is read."""

    def __init__(self, device):
        self.state = torch.zeros(2, dtype=torch.float64, device=device)

    def add(self, value, n):
        self.state += torch.tensor([float(value) * n, n], dtype=torch.float64, device=self.state.device)

    def compute(self):
        s = self.state.clone()
        dist.all_reduce(s)
        return (s[0] / s[1]).item()
