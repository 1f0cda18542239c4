import numpy as np
import torch

PEAKS = {0: (10, 40), 1: (22, 40), 2: (10, 51), 3: (33, 51)}


def sample_spectra(n, bins=64, seed=0):
    rng = np.random.default_rng(seed)
    grid = np.arange(bins)
    y = rng.integers(0, len(PEAKS), n)
    x = rng.normal(0, 0.35, (n, bins))
    for i, k in enumerate(y):
        for centre in PEAKS[k]:
            x[i] += rng.uniform(0.5, 1.2) * np.exp(-0.5 * ((grid - centre - rng.normal(0, 0.7)) / 1.5) ** 2)
        x[i] += rng.uniform(-0.3, 0.3) * grid / bins
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)
