import torch
from torch.utils.data import Sampler


class LengthBuckets(Sampler):
    """Yields batches of utterances with similar length, in random order; reshuffled by `set_epoch`."""

    def __init__(self, lengths, batch_size, bucket=8, seed=0):
        self.lengths = torch.as_tensor(lengths)
        self.batch_size, self.bucket, self.seed = batch_size, bucket, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.lengths), generator=g)
        batches = []
        for pool in order.split(self.batch_size * self.bucket):
            pool = pool[self.lengths[pool].argsort()]
            batches += [b.tolist() for b in pool.split(self.batch_size) if len(b) == self.batch_size]
        for k in torch.randperm(len(batches), generator=g).tolist():
            yield batches[k]
