import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class TideWindows(Dataset):
    """Sliding windows over synthetic tide gauges (two tidal constituents plus surge)."""

    def __init__(self, n_series, length, context, horizon, seed):
        rng = np.random.default_rng(seed)
        t = np.arange(length)
        self.windows = []
        for _ in range(n_series):
            a, b = rng.uniform(0.5, 1.5, 2)
            ph = rng.uniform(0, 2 * np.pi, 2)
            surge = np.cumsum(rng.normal(0, 0.02, length))
            y = a * np.sin(2 * np.pi * t / 12.4 + ph[0]) + b * np.sin(2 * np.pi * t / 24 + ph[1]) + surge
            for s in range(0, length - context - horizon, 4):
                self.windows.append(y[s:s + context + horizon].astype(np.float32))
        self.context = context

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        w = torch.from_numpy(self.windows[i])
        return w[:self.context], w[self.context:]


def make_loader(dataset, train=True, batch_size=32, num_workers=0, drop_last=False, seed=0, **extra):
    gen = torch.Generator().manual_seed(seed)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=train,
        num_workers=num_workers,
        drop_last=drop_last and train,
        generator=gen,
        pin_memory=extra.get("pin_memory", False),
    )
