from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


def normalise(ct):
    ct = np.clip(ct, -160, 240)
    return ((ct + 160) / 400).astype(np.float32)


class RandomPatches(Dataset):
    def __init__(self, cases, root, patch):
        self.cases, self.root, self.patch = cases, Path(root), patch

    def __len__(self):
        return 8 * len(self.cases)

    def __getitem__(self, i):
        c = self.cases[i % len(self.cases)]
        ct = np.load(self.root / f"{c}_ct.npy", mmap_mode="r")
        seg = np.load(self.root / f"{c}_seg.npy", mmap_mode="r")
        o = [int(torch.randint(s - p + 1, (1,))) for s, p in zip(ct.shape, self.patch)]
        sl = tuple(slice(a, a + p) for a, p in zip(o, self.patch))
        return torch.from_numpy(normalise(ct[sl]))[None], torch.from_numpy(seg[sl].astype(np.int64))


class WholeVolumes(Dataset):
    """sides are padded to multiples of 16 at export time"""

    def __init__(self, cases, root):
        self.cases, self.root = cases, Path(root)

    def __len__(self):
        return len(self.cases)

    def __getitem__(self, i):
        c = self.cases[i]
        ct, seg = np.load(self.root / f"{c}_ct.npy"), np.load(self.root / f"{c}_seg.npy")
        return torch.from_numpy(normalise(ct))[None], torch.from_numpy(seg.astype(np.int64))
