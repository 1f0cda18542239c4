import numpy as np
import torch


def power_curve(n, seed):
    rng = np.random.default_rng(seed)
    wind = rng.weibull(2.0, n) * 9
    direction = rng.uniform(0, 2 * np.pi, n)
    temp = rng.normal(10, 8, n)
    density = 1.225 * 288 / (273 + temp)
    wake = 1 - 0.25 * np.clip(np.cos(direction - 1.0), 0, 1) ** 4
    power = np.clip(0.5 * density * (wind * wake) ** 3 / 600, 0, 1) * (wind < 24) + rng.normal(0, 0.02, n)
    feats = np.stack([wind / 10, np.sin(direction), np.cos(direction), temp / 10], 1)
    return torch.tensor(feats, dtype=torch.float32), torch.tensor(power, dtype=torch.float32)
