"""Streaming data set: walks the class 'shards' one after the other, optionally through a shuffle buffer."""
import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import IterableDataset


def write_shards(val_fraction, seed):
    """One shard per class, as the exporter lays them out; returns (train shards, validation arrays)."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16.0).astype(np.float32)
    rng = np.random.default_rng(seed)
    shards, vx, vy = [], [], []
    for c in range(10):
        rows = rng.permutation(np.flatnonzero(y == c))
        cut = int(len(rows) * val_fraction)
        vx.append(x[rows[:cut]])
        vy.append(y[rows[:cut]])
        shards.append([(x[r], int(y[r])) for r in rows[cut:]])
    return shards, (torch.from_numpy(np.concatenate(vx)), torch.from_numpy(np.concatenate(vy)))


class ShardStream(IterableDataset):
    def __init__(self, shards, shuffle_buffer=0, seed=0):
        self.shards, self.shuffle_buffer, self.seed = shards, shuffle_buffer, seed
        self.epoch = 0

    def _raw(self):
        for shard in self.shards:
            yield from shard

    def __iter__(self):
        rng = random.Random(f"{self.seed}-{self.epoch}")
        self.epoch += 1
        if self.shuffle_buffer <= 1:
            yield from self._raw()
            return
        pool = []
        for item in self._raw():
            if len(pool) < self.shuffle_buffer:
                pool.append(item)
                continue
            k = rng.randrange(len(pool))
            pool[k], item = item, pool[k]
            yield item
        rng.shuffle(pool)
        yield from pool
