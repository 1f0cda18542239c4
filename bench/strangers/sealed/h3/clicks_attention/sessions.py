import numpy as np
import torch


def click_sessions(n, length, n_items, seed):
    rng = np.random.default_rng(seed)
    jump = np.random.default_rng(0).permutation(n_items)
    out = np.empty((n, length), dtype=np.int64)
    out[:, 0] = rng.integers(0, n_items, n)
    for t in range(1, length):
        follow = rng.random(n) < 0.8
        out[:, t] = np.where(follow, jump[out[:, t - 1]], rng.integers(0, n_items, n))
    return torch.from_numpy(out)
