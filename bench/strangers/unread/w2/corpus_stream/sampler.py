import torch
from torch.utils.data import Sampler


class ResumableSampler(Sampler):
    """Shuffles per epoch and remembers how many indices of the epoch have been consumed."""

    def __init__(self, length, seed):
        self.length, self.seed = length, seed
        self.epoch = 0
        self.consumed = 0

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.consumed = 0

    def advance(self, n):
        self.consumed += n

    def state_dict(self):
        return {"epoch": self.epoch, "consumed": self.consumed, "seed": self.seed}

    def load_state_dict(self, state):
        self.epoch, self.consumed, self.seed = state["epoch"], state["consumed"], state["seed"]

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.length, generator=g).tolist()
        yield from order[self.consumed:]

    def __len__(self):
        return self.length - self.consumed
