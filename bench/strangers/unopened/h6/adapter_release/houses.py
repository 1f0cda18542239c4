import numpy as np
import torch


def market(n, seed, boom=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 12)).astype(np.float32)
    price = 1.5 * x[:, 0] + np.abs(x[:, 1]) - 0.7 * x[:, 2] * x[:, 3] + 0.3 * x[:, 4]
    price += boom * (1.2 * x[:, 5] - 1.0 * x[:, 0] + 0.8)
    return torch.from_numpy(x), torch.from_numpy((price + rng.normal(0, 0.1, n)).astype(np.float32))
