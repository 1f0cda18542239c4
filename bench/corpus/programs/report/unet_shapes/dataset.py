"""Synthetic segmentation data: bright discs / boxes / triangles on a noisy gradient."""
import numpy as np
import torch
from torch.utils.data import Dataset


def _disc(yy, xx, rng, size):
    cy, cx = rng.uniform(6, size - 6, 2)
    r = rng.uniform(3, 7)
    return (yy - cy) ** 2 + (xx - cx) ** 2 <= r ** 2


def _box(yy, xx, rng, size):
    y0, x0 = rng.uniform(1, size - 12, 2)
    h, w = rng.uniform(5, 11, 2)
    return (yy >= y0) & (yy <= y0 + h) & (xx >= x0) & (xx <= x0 + w)


def _triangle(yy, xx, rng, size):
    y0, x0 = rng.uniform(1, size - 13, 2)
    h = rng.uniform(7, 12)
    below = yy - y0
    return (below >= 0) & (below <= h) & (np.abs(xx - (x0 + h / 2)) <= below / 2)


SHAPES = (_disc, _box, _triangle)


def render_sample(rng, size, max_shapes, noise_std):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)

    # slowly varying background so that a global threshold is not enough
    gy, gx = rng.uniform(-1, 1, 2)
    image = 0.4 * (gy * (yy / size - 0.5) + gx * (xx / size - 0.5))
    mask = np.zeros((size, size), dtype=bool)

    for _ in range(rng.integers(1, max_shapes + 1)):
        region = SHAPES[rng.integers(len(SHAPES))](yy, xx, rng, size)
        image[region] = rng.uniform(0.6, 1.2)
        mask |= region

    image = image + rng.normal(0.0, noise_std, image.shape)
    return image.astype(np.float32), mask.astype(np.float32)


class ShapesDataset(Dataset):
    def __init__(self, n, image_size, max_shapes, noise_std, seed, augment=False):
        rng = np.random.default_rng(seed)
        pairs = [render_sample(rng, image_size, max_shapes, noise_std) for _ in range(n)]
        self.images = torch.from_numpy(np.stack([p[0] for p in pairs])).unsqueeze(1)
        self.masks = torch.from_numpy(np.stack([p[1] for p in pairs])).unsqueeze(1)
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        img, mask = self.images[idx], self.masks[idx]
        if self.augment and torch.rand(()) < 0.5:
            # flip both, otherwise the labels would no longer match
            img, mask = img.flip(-1), mask.flip(-1)
        return {"image": img, "mask": mask}
