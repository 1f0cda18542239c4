"""Land cover tiles. Annotation values: 0 = not annotated, 1..5 = classes."""
import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES = ["water", "forest", "field", "road", "building"]
BANDS = np.array([[0.1, 0.2, 0.7, 0.0], [0.1, 0.6, 0.1, 0.9], [0.6, 0.7, 0.2, 0.6],
                  [0.4, 0.4, 0.4, 0.2], [0.9, 0.5, 0.5, 0.3]], np.float32)


class LandCover(Dataset):
    def __init__(self, n, size=20, seed=0, transform=None):
        self.rng = np.random.default_rng(seed)
        self.transform = transform
        self.items = [self._scene(size) for _ in range(n)]

    def _scene(self, size):
        ann = np.full((size, size), self.rng.integers(1, 6), np.uint8)
        for _ in range(4):
            r, c = self.rng.integers(0, size - 6, 2)
            h, w = self.rng.integers(4, 10, 2)
            ann[r:r + h, c:c + w] = self.rng.integers(1, 6)
        image = BANDS[ann - 1] + 0.25 * self.rng.standard_normal((size, size, 4)).astype(np.float32)
        holes = self.rng.random((size, size)) < 0.05
        ann[holes] = 0
        return image.astype(np.float32), ann

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, ann = self.items[i]
        sample = {"image": torch.from_numpy(image).permute(2, 0, 1), "mask": torch.from_numpy(ann)}
        return self.transform(sample) if self.transform else sample
