import numpy as np
import torch


class NegativeSampler:
    """Uniform negatives, resampled while they hit a known positive."""

    def __init__(self, positives, n_items):
        self.n_items = n_items
        self.known = set(map(tuple, positives.tolist()))
        self.rng = np.random.default_rng()

    def __call__(self, users):
        neg = self.rng.integers(self.n_items, size=len(users))
        for k, u in enumerate(users.tolist()):
            while (u, int(neg[k])) in self.known:
                neg[k] = self.rng.integers(self.n_items)
        return torch.from_numpy(neg)
