import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from augment import PatchAugmenter


class Patches(Dataset):
    def __init__(self, images, labels, augment=None):
        self.images, self.labels, self.augment = images, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.augment is not None:
            img = self.augment(img)
        return torch.from_numpy(np.ascontiguousarray(img, dtype=np.float32))[None], int(self.labels[i])


def render(n, seed, side=20):
    g = np.random.default_rng(seed)
    imgs = g.normal(0, 0.3, (n, side, side))
    labels = g.integers(0, 2, n)
    for k in np.flatnonzero(labels):
        y, x = g.integers(2, side - 8, 2)
        for d in range(6):
            imgs[k, y + d, x + d] += 1.2
    return imgs, labels


def build_loaders(cfg):
    train = Patches(*render(512, cfg["seed"]), augment=PatchAugmenter(cfg["seed"]))
    val = Patches(*render(160, cfg["seed"] + 1))
    g = torch.Generator().manual_seed(cfg["seed"])
    return (
        DataLoader(train, cfg["batch"], shuffle=True, num_workers=cfg["workers"], generator=g),
        DataLoader(val, 80),
    )
