from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import Dataset


class DigitSet(Dataset):
    """8x8 grey digits; jitter is applied to the raw image, then the image is standardised."""

    MEAN, STD = 4.88, 6.02

    def __init__(self, images: np.ndarray, labels: np.ndarray, shift: int = 1):
        self.images, self.labels, self.shift = images.astype("float32"), labels, shift

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, i: int) -> torch.Tensor:
        img = torch.from_numpy(self.images[i])
        dy, dx = (int(v) for v in torch.randint(-self.shift, self.shift + 1, (2,)))
        img = torch.roll(img, (dy, dx), (0, 1))
        return (img - self.MEAN) / self.STD

    def __getitem__(self, i: int):
        return self.image(i)[None], int(self.labels[i])


class PlainDigitSet(DigitSet):
    """The same digits without jitter, for scoring."""

    def image(self, i: int) -> torch.Tensor:
        return torch.from_numpy(self.images[i])
