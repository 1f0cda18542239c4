import numpy as np
import torch
from torch.utils.data import Dataset

NAMES = ["square", "cross", "disc", "bar", "corner"]


def draw(kind, rng):
    image = np.zeros((16, 16), dtype=np.float32)
    r, c, s = rng.integers(3, 9), rng.integers(3, 9), rng.integers(3, 6)
    if kind == 0:
        image[r : r + s, c : c + s] = 1
        image[r + 1 : r + s - 1, c + 1 : c + s - 1] = 0
    elif kind == 1:
        image[r : r + s, c + s // 2] = 1
        image[r + s // 2, c : c + s] = 1
    elif kind == 2:
        yy, xx = np.mgrid[:16, :16]
        image[(yy - r - 2) ** 2 + (xx - c - 2) ** 2 <= (s / 2) ** 2] = 1
    elif kind == 3:
        image[r, c : c + s + 1] = 1
    else:
        image[r : r + s, c] = 1
        image[r + s - 1, c : c + s] = 1
    return image * 200 + rng.normal(0, 25, image.shape).astype(np.float32)


class ShapesDataset(Dataset):
    """Grey-scale drawings, normalised to zero mean and unit variance."""

    def __init__(self, size, seed, mean=12.0, std=50.0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(NAMES), size)
        images = np.stack([draw(k, rng) for k in self.labels])
        self.images = (images - mean) / std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float().unsqueeze(0)
        label = int(self.labels[index])
        return image, label
