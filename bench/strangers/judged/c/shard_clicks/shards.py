"""Click log, stored as one shard per day. Every worker reads its own days."""
import torch
from torch.utils.data import IterableDataset

ROWS_PER_DAY = [640, 512, 704, 480, 768, 448]
N_FEAT = 12


def day(index):
    g = torch.Generator().manual_seed(1000 + index)
    n = ROWS_PER_DAY[index % len(ROWS_PER_DAY)]
    x = torch.randn(n, N_FEAT, generator=g)
    w = torch.linspace(-1, 1, N_FEAT)
    p = torch.sigmoid(x @ w + x[:, 0] * x[:, 1])
    return x, (torch.rand(n, generator=g) < p).float()


class DayShards(IterableDataset):
    def __init__(self, days, rank, world, batch):
        self.mine = days[rank::world]
        self.batch = batch

    def __iter__(self):
        for d in self.mine:
            x, y = day(d)
            order = torch.randperm(len(y))
            for part in order.split(self.batch):
                yield x[part], y[part]
