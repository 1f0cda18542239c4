import numpy as np
import torch


def hourly_load(days=90, seed=4):
    rng = np.random.default_rng(seed)
    t = np.arange(days * 24)
    daily = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1)
    weekly = 0.5 * (((t // 24) % 7) < 5)
    return (daily + weekly + 0.15 * rng.standard_normal(len(t))).astype(np.float32)


def windows(load, context=48, horizon=12, stride=3):
    xs, ys = [], []
    for i in range(0, len(load) - context - horizon, stride):
        xs.append(load[i:i + context])
        ys.append(load[i + context:i + context + horizon])
    return torch.from_numpy(np.stack(xs)), torch.from_numpy(np.stack(ys))
