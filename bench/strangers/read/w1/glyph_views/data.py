import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import Dataset


class GlyphSet(Dataset):
    """Deterministic 80/20 cut of the bundled scans."""

    def __init__(self, train=True, seed=0):
        d = load_digits()
        order = np.random.default_rng(seed).permutation(len(d.target))
        n = int(0.8 * len(order))
        keep = order[:n] if train else order[n:]
        self.images = torch.tensor(d.images[keep] / 16.0, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(d.target[keep])

    def __len__(self):
        return len(self.labels)

    def load(self, i):
        return self.images[i]

    def __getitem__(self, i):
        return self.load(i), self.labels[i]


class ShiftedGlyphs(GlyphSet):
    """Same images with random translations while training."""

    def __init__(self, train=True, seed=0, max_shift=1):
        super().__init__(seed=seed)
        self.augment = train
        self.max_shift = max_shift

    def load(self, i):
        image = super().load(i)
        if self.augment:
            dy, dx = torch.randint(-self.max_shift, self.max_shift + 1, (2,)).tolist()
            image = image.roll((dy, dx), dims=(1, 2))
        return image
