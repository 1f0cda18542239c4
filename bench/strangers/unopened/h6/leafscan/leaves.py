import numpy as np
import torch
from torch.utils.data import Dataset


class LeafImages(Dataset):
    """16x16 grey images of ellipses; the species decides elongation and angle."""

    def __init__(self, n, seed=0, size=16):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:size, :size] - (size - 1) / 2
        self.y = rng.integers(0, 5, n)
        self.x = np.zeros((n, 1, size, size), np.float32)
        for i, s in enumerate(self.y):
            th = s * np.pi / 5 + rng.normal(0, 0.12)
            u, v = xx * np.cos(th) + yy * np.sin(th), -xx * np.sin(th) + yy * np.cos(th)
            self.x[i, 0] = ((u / 6) ** 2 + (v / 2.5) ** 2 < 1) + rng.normal(0, 0.5, (size, size))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return i, torch.from_numpy(self.x[i]), int(self.y[i])
