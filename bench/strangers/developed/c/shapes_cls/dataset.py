"""Little coloured shapes on noise. Files on disk would be HWC uint8, as PIL gives them; so are these."""
import numpy as np
import torch
from torch.utils.data import Dataset

KINDS = ("square", "disc", "cross")


def draw(kind, size, rng):
    img = rng.integers(0, 60, (size, size, 3), dtype=np.uint8)
    yy, xx = np.mgrid[:size, :size]
    cy, cx = rng.integers(8, size - 8, 2)
    r = rng.integers(4, 7)
    if kind == "square":
        m = (abs(yy - cy) < r) & (abs(xx - cx) < r)
    elif kind == "disc":
        m = (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
    else:
        m = ((abs(yy - cy) < 2) & (abs(xx - cx) < r)) | ((abs(xx - cx) < 2) & (abs(yy - cy) < r))
    img[m] = rng.integers(150, 255, 3, dtype=np.uint8)
    return img


class Shapes(Dataset):
    def __init__(self, n, size=24, seed=0, augment=False):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(KINDS), n)
        self.images = [draw(KINDS[k], size, rng) for k in self.labels]
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = torch.from_numpy(self.images[i]).float().div(255)
        x = x.permute(2, 0, 1)
        if self.augment and torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x, int(self.labels[i])
