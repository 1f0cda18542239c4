"""Synthetic absorption spectra: a few weak peaks per compound on a noisy baseline."""
import numpy as np
import torch
from torch.utils.data import TensorDataset, DataLoader, Subset


def synthesise(samples, bins, classes, seed):
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, bins)
    centres = rng.uniform(0.1, 0.9, size=(classes, 3))
    labels = rng.integers(0, classes, size=samples)
    spectra = rng.normal(0, 1.0, size=(samples, bins))
    for i, c in enumerate(labels):
        for mu in centres[c]:
            spectra[i] += rng.uniform(0.3, 0.9) * np.exp(-((grid - mu) ** 2) / 0.0008)
    return (torch.tensor(spectra, dtype=torch.float32),
            torch.tensor(labels, dtype=torch.long))


def partition(n, holdout, seed):
    order = np.random.default_rng(seed).permutation(n)
    cut = int(n * (1 - holdout))
    return order[:cut].tolist(), order[cut:].tolist()


def phase_loaders(dataset, holdout, batch_size, seed):
    fit_ids, hold_ids = partition(len(dataset), holdout, seed)
    gen = torch.Generator().manual_seed(seed)
    fit = DataLoader(Subset(dataset, fit_ids), batch_size=batch_size, shuffle=True, generator=gen)
    hold = DataLoader(Subset(dataset, hold_ids), batch_size=256)
    return fit, hold


def as_dataset(cfg, seed):
    x, y = synthesise(cfg["samples"], cfg["bins"], cfg["classes"], seed)
    return TensorDataset(x, y)
