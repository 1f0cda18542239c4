import numpy as np
import torch
from torch.utils.data import IterableDataset

W = np.random.default_rng(99).normal(size=16)


def read_shard(shard_id, seed=0):
    """Stand-in for reading one parquet file of the click log; the files differ in length."""
    rng = np.random.default_rng([seed, shard_id])
    rows = int(rng.integers(300, 900))
    x = rng.normal(size=(rows, 16)).astype(np.float32)
    y = (x @ W + rng.normal(size=rows) > 0).astype(np.float32)
    return x, y


class ClickStream(IterableDataset):
    def __init__(self, shard_ids, seed=0, shuffle=True):
        self.shard_ids, self.seed, self.shuffle, self.epoch = list(shard_ids), seed, shuffle, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(self.shard_ids) if self.shuffle else self.shard_ids
        for s in order:
            x, y = read_shard(int(s))
            rows = rng.permutation(len(x)) if self.shuffle else range(len(x))
            for i in rows:
                yield torch.from_numpy(x[i]), torch.tensor(y[i])
