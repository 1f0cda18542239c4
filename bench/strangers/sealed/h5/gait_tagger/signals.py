import numpy as np
import torch
from torch.utils.data import TensorDataset


def simulate(n, length=40, seed=0):
    rng = np.random.default_rng(seed)
    cadence = rng.uniform(0.15, 0.35, size=(n, 1))
    offset = rng.uniform(0, 2 * np.pi, size=(n, 1))
    theta = cadence * np.arange(length)[None] + offset
    phase = (np.floor((theta % (2 * np.pi)) / (np.pi / 2))).astype(np.int64)
    acc = np.stack([np.sin(theta), np.cos(2 * theta), np.sin(theta + 0.6)], axis=-1)
    acc = acc + 0.35 * rng.normal(size=acc.shape)
    return TensorDataset(torch.tensor(acc, dtype=torch.float32), torch.tensor(phase))
