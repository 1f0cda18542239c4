import numpy as np
import torch

CLASSES = 5
DIM = 30
_centres = np.random.default_rng(100).normal(0, 0.7, size=(CLASSES, DIM))


def shard(class_id, count, seed):
    """one shard per class, that is how the export job writes them"""
    rng = np.random.default_rng(seed * 1000 + class_id)
    for _ in range(count):
        yield _centres[class_id] + rng.normal(0, 1, DIM), class_id


def read_shards(count, seed):
    def source():
        for c in range(CLASSES):
            yield from shard(c, count, seed)
    return source


def to_tensors(record):
    x, c = record
    return torch.tensor(x, dtype=torch.float32), torch.tensor(c)
