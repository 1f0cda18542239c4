import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


class CollisionStream(IterableDataset):
    """Simulated events; each worker of each epoch has its own child seed."""

    def __init__(self, seed, per_epoch):
        self.seed, self.per_epoch = seed, per_epoch
        self.epoch = 0

    def event(self, rng):
        signal = int(rng.random() < 0.5)
        mass = 1.25 if signal else rng.exponential(1.0) + 0.3
        pt, eta, phi = rng.gamma(3, 0.4), rng.normal(0, 1.2), rng.uniform(-np.pi, np.pi)
        smear = mass * (1 + 0.06 * rng.normal())
        x = [smear, pt * np.cos(phi), pt * np.sin(phi), np.sinh(eta) * pt]
        return np.asarray(x, dtype=np.float32), np.float32(signal)

    def __iter__(self):
        info = get_worker_info()
        k, n = (0, 1) if info is None else (info.id, info.num_workers)
        rng = np.random.default_rng([self.seed, self.epoch, k])
        share = len(range(k, self.per_epoch, n))
        for _ in range(share):
            yield self.event(rng)
