import numpy as np
import torch
from torch.utils.data import TensorDataset


def cell_images(n, size=32, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    img = rng.normal(0, 0.15, (n, 1, size, size)).astype(np.float32)
    lab = np.zeros((n, size, size), dtype=np.int64)
    for i in range(n):
        for _ in range(rng.integers(1, 4)):
            cy, cx, r = rng.integers(6, size - 6), rng.integers(6, size - 6), rng.integers(3, 6)
            d = np.hypot(yy - cy, xx - cx)
            lab[i][d < r] = 1
            lab[i][d < r / 2] = 2
        img[i, 0] += 0.5 * (lab[i] == 1) + 1.0 * (lab[i] == 2)
    return TensorDataset(torch.from_numpy(img), torch.from_numpy(lab))
