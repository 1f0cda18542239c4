import itertools

import numpy as np
import torch
from torch.utils.data import IterableDataset

GRID = 48


def random_profile(rng, modes=5):
    x = np.linspace(0, 1, GRID)
    amp = rng.normal(size=modes) / (1 + np.arange(modes))
    return sum(a * np.sin((k + 1) * np.pi * x) for k, a in enumerate(amp)), amp


def diffuse(amp, t, kappa=0.05):
    x = np.linspace(0, 1, GRID)
    return sum(
        a * np.exp(-kappa * ((k + 1) * np.pi) ** 2 * t) * np.sin((k + 1) * np.pi * x) for k, a in enumerate(amp)
    )


class HeatStream(IterableDataset):
    """Endless stream of (initial profile, time) -> diffused profile, simulated while training."""

    def __init__(self, seed, limit):
        self.rng = np.random.default_rng(seed)
        self.limit = limit

    def sample(self):
        u0, amp = random_profile(self.rng)
        t = self.rng.uniform(0.1, 1.0)
        u1 = diffuse(amp, t)
        inp = np.concatenate([u0, [t]]).astype(np.float32)
        return torch.from_numpy(inp), torch.from_numpy(u1.astype(np.float32))

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        share = self.limit if info is None else self.limit // info.num_workers
        for _ in itertools.repeat(None, share):
            yield self.sample()
