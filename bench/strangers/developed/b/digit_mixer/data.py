"""Digit loaders. Split indices are drawn once from a fixed seed."""
from functools import lru_cache

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


@lru_cache(maxsize=1)
def _arrays():
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32) / 16.0
    y = torch.tensor(d.target)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(99))
    cut = int(0.75 * len(y))
    return {"train": (x[order[:cut]], y[order[:cut]]), "heldout": (x[order[cut:]], y[order[cut:]])}


class Digits(Dataset):
    def __init__(self, split):
        self.x, self.y = _arrays()[split]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def get_loader(split="train", *, batch_size=64, shuffle=False, drop_last=False, **extra):
    return DataLoader(Digits(split), batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, **extra)
