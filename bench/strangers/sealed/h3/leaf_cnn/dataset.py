import numpy as np
import torch
from torch.utils.data import Dataset


class Leaves(Dataset):
    """Green ellipses; class = orientation and spots."""

    def __init__(self, n, size, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[-1:1:size * 1j, -1:1:size * 1j]
        self.items = []
        for _ in range(n):
            label = int(rng.integers(0, 4))
            a, b = (0.8, 0.4) if label % 2 else (0.4, 0.8)
            leaf = ((xx / a) ** 2 + (yy / b) ** 2 < 1).astype("float32")
            img = np.stack([0.1 * leaf, 0.7 * leaf, 0.2 * leaf])
            if label >= 2:
                r, c = rng.integers(5, size - 6, 2)
                img[0, r:r + 2, c:c + 2] = 0.9
            img = img + 0.1 * rng.normal(size=img.shape)
            self.items.append((torch.tensor(img, dtype=torch.float32), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]
