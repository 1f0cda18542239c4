import numpy as np
import torch
from torch.utils.data import TensorDataset


def pumps(n, seed, steps=30):
    """Vibration channels whose drift depends on hidden wear; target is the remaining life in [0, 1]."""
    rng = np.random.default_rng(seed)
    wear0, rate = rng.uniform(0, 0.5, n), rng.uniform(0.002, 0.02, n)
    t = np.arange(steps)
    wear = wear0[:, None] + rate[:, None] * t
    chans = np.stack([wear + rng.normal(0, 0.15, wear.shape),
                      np.sin(t / 3) * (1 + wear) + rng.normal(0, 0.15, wear.shape),
                      np.cumsum(rng.normal(0, 0.1, wear.shape) + 0.05 * wear, axis=1)], -1)
    rul = np.clip((1 - wear[:, -1]) / (rate * 100), 0, 1)
    return TensorDataset(torch.tensor(chans, dtype=torch.float32), torch.tensor(rul, dtype=torch.float32))
