import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_homes(cfg):
    rng = np.random.default_rng(cfg.seed)
    X = rng.normal(size=(cfg.n_rows, cfg.n_features)).astype("float32")
    base = np.tanh(X[:, 0] + X[:, 1]) + 0.5 * X[:, 2]
    price = base + 0.3 * X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=cfg.n_rows)
    rent = 0.6 * base - 0.4 * X[:, 5] + 0.1 * rng.normal(size=cfg.n_rows)
    sold = (base - X[:, 6] + 0.3 * rng.normal(size=cfg.n_rows) > 0).astype("float32")
    Y = np.stack([price, rent, sold], 1).astype("float32")
    full = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    n_val = cfg.n_rows // 5
    train, val = random_split(full, [cfg.n_rows - n_val, n_val],
                              generator=torch.Generator().manual_seed(cfg.seed))
    return (DataLoader(train, cfg.batch_size, shuffle=True),
            DataLoader(val, 512))
