"""A small tf.data look-alike on top of IterableDataset."""
import random

import torch
from torch.utils.data import IterableDataset


class Stream(IterableDataset):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return iter(self.source())

    def map(self, fn):
        return Stream(lambda: (fn(item) for item in self))

    def shuffle(self, buffer_size, seed):
        rnd = random.Random(seed)

        def gen():
            buffer = []
            for item in self:
                if len(buffer) < buffer_size:
                    buffer.append(item)
                    continue
                k = rnd.randrange(buffer_size)
                yield buffer[k]
                buffer[k] = item
            rnd.shuffle(buffer)
            yield from buffer

        return Stream(gen)

    def batch(self, size):
        def gen():
            group = []
            for item in self:
                group.append(item)
                if len(group) == size:
                    yield tuple(torch.stack(parts) for parts in zip(*group))
                    group = []
            if group:
                yield tuple(torch.stack(parts) for parts in zip(*group))

        return Stream(gen)
