import numpy as np
import torch
from torch.utils.data import Dataset


class PatchAugment:
    """Random crop, flips and acquisition noise for one slice."""

    def __init__(self, size: int, noise: float, seed: int):
        self.size = size
        self.noise = noise
        self.rng = np.random.default_rng(seed)

    def __call__(self, img: np.ndarray):
        h, w = img.shape
        top = self.rng.integers(0, h - self.size + 1)
        left = self.rng.integers(0, w - self.size + 1)
        clean = img[top:top + self.size, left:left + self.size]
        if self.rng.random() < 0.5:
            clean = clean[:, ::-1]
        noisy = clean + self.rng.normal(0, self.noise, clean.shape)
        return clean, noisy


def phantom(rng: np.random.Generator, side: int = 40) -> np.ndarray:
    yy, xx = np.mgrid[0:side, 0:side] / side
    img = np.zeros((side, side))
    for _ in range(4):
        cy, cx, r = rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.8), rng.uniform(0.05, 0.25)
        img += rng.uniform(0.2, 1.0) * ((yy - cy) ** 2 + (xx - cx) ** 2 < r * r)
    return img / max(img.max(), 1e-6)


class SliceDataset(Dataset):
    def __init__(self, slices, augment):
        self.slices, self.augment = slices, augment

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, i):
        clean, noisy = self.augment(self.slices[i])
        to = lambda a: torch.from_numpy(np.ascontiguousarray(a)).float()[None]
        return to(noisy), to(clean)


class FixedPairs(Dataset):
    """Validation: centre crop and noise drawn once."""

    def __init__(self, slices, size, noise, seed):
        rng = np.random.default_rng(seed)
        o = (slices[0].shape[0] - size) // 2
        clean = np.stack([s[o:o + size, o:o + size] for s in slices])
        noisy = clean + rng.normal(0, noise, clean.shape)
        self.clean = torch.from_numpy(clean).float()[:, None]
        self.noisy = torch.from_numpy(noisy).float()[:, None]

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]
