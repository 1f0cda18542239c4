import numpy as np
import torch
from torch.utils.data import TensorDataset, random_split


def synth_leaves(n_per_class, size, n_classes, noise, seed):
    """Stripes with a class specific angle, one channel."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size] / size
    images, labels = [], []
    for c in range(n_classes):
        theta = np.pi * c / n_classes
        for _ in range(n_per_class):
            phase = rng.uniform(0, 2 * np.pi)
            wave = np.sin(12 * (xx * np.cos(theta) + yy * np.sin(theta)) + phase)
            images.append(wave + noise * rng.standard_normal((size, size)))
            labels.append(c)
    x = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
    return TensorDataset(x, torch.tensor(labels))


def get_splits(cfg):
    ds = synth_leaves(**cfg)
    n_val = len(ds) // 5
    gen = torch.Generator().manual_seed(cfg["seed"])
    return random_split(ds, [len(ds) - n_val, n_val], generator=gen)
