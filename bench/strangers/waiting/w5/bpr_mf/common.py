import random

import numpy as np
import torch


def set_seed(seed):
    """Make a run bit-for-bit repeatable; required for the ablation tables."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def synthetic_interactions(n_users=200, n_items=150, k=6, per_user=12):
    u = np.random.randn(n_users, k)
    v = np.random.randn(n_items, k)
    score = u @ v.T + np.random.gumbel(size=(n_users, n_items))
    top = np.argsort(-score, axis=1)[:, :per_user]
    train = [(i, j) for i in range(n_users) for j in top[i, 1:]]
    test = top[:, 0]
    return np.array(train), test
