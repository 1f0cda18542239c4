import numpy as np
import torch
from torch.utils.data import Dataset

BANDS = ("B02", "B03", "B04", "B08")
CLASSES = ("water", "forest", "crop", "urban")


def fake_patches(n, size=24, seed=0):
    """Reflectance patches laid out like the .npy exports: (n, rows, cols, bands)."""
    rng = np.random.default_rng(seed)
    spectra = np.array([[.08, .07, .05, .03], [.04, .06, .04, .35], [.07, .10, .09, .28], [.15, .17, .18, .20]])
    y = rng.integers(0, len(CLASSES), n)
    x = spectra[y][:, None, None, :] + rng.normal(0, 0.05, (n, size, size, len(BANDS)))
    return x.astype(np.float32), y.astype(np.int64)


class Patches(Dataset):
    def __init__(self, x, y, mean, std, train=False):
        self.x, self.y, self.train = x, y, train
        self.mean, self.std = mean, std

    def __len__(self):
        return len(self.y)

    def augment(self, img):
        k = np.random.randint(4)
        img = np.rot90(img, k, axes=(0, 1))
        if np.random.rand() < 0.5:
            img = np.fliplr(img)
        return img

    def __getitem__(self, i):
        img = (self.x[i] - self.mean) / self.std
        if self.train:
            img = self.augment(img)
        return torch.from_numpy(np.ascontiguousarray(img)), int(self.y[i])
