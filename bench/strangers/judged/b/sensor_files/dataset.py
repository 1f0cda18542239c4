from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from record import GESTURES


class GestureFolder(Dataset):
    def __init__(self, root: Path, scale=None):
        self.files = sorted(root.glob("trial_*.npy"))
        names = (root / "labels.txt").read_text().split()
        assert len(names) == len(self.files), "every trial needs a label"
        self.targets = [GESTURES.index(n) for n in names]
        self.scale = scale or self._estimate()

    def _estimate(self):
        stack = np.stack([np.load(f) for f in self.files])
        return float(stack.mean()), float(stack.std())

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        mean, std = self.scale
        x = (np.load(self.files[i]) - mean) / std
        return torch.from_numpy(x).float(), self.targets[i]
