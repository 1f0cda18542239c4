import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class RandomEchoes(IterableDataset):
    """Endless radar echoes made on the fly; every worker has a generator of its own."""

    def __init__(self, total, bins=32):
        self.total, self.bins = total, bins

    def __iter__(self):
        info = get_worker_info()
        seed, share = (torch.initial_seed(), self.total) if info is None else (info.seed, self.total // info.num_workers)
        rng = np.random.default_rng(seed)
        for _ in range(share):
            yield echo(rng, self.bins)


class FixedEchoes(Dataset):
    """The same echoes on every visit: item i has the seed i."""

    def __init__(self, n, bins=32, offset=10_000_000):
        self.n, self.bins, self.offset = n, bins, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return echo(np.random.default_rng(self.offset + i), self.bins)


def echo(rng, bins):
    where = rng.uniform(4, bins - 4)
    signal = np.exp(-0.5 * ((np.arange(bins) - where) / 1.5) ** 2) * rng.uniform(0.8, 2.0)
    return (signal + 0.2 * rng.standard_normal(bins)).astype(np.float32), np.float32(where / bins)
