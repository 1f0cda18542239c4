import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def electricity(hours=1800, seed=4):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    load = 1.0 + 0.5 * np.sin(2 * np.pi * t / 24) + 0.2 * np.sin(2 * np.pi * t / 168)
    return (load + 0.08 * rng.standard_normal(hours)).astype(np.float32)


def windows(x, history, horizon):
    n = len(x) - history - horizon + 1
    src = np.stack([x[i:i + history] for i in range(n)])[..., None]
    dst = np.stack([x[i + history:i + history + horizon] for i in range(n)])
    return TensorDataset(torch.from_numpy(src), torch.from_numpy(dst))


def loaders(history=36, horizon=6, batch_size=64):
    x = electricity()
    cut = int(0.75 * len(x))
    mu, sd = x[:cut].mean(), x[:cut].std()
    x = (x - mu) / sd
    return {"fit": DataLoader(windows(x[:cut], history, horizon), batch_size=batch_size, shuffle=True),
            "val": DataLoader(windows(x[cut:], history, horizon), batch_size=256)}
