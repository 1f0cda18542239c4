import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_customers(n, seed):
    rng = np.random.default_rng(seed)
    tenure = rng.gamma(2.0, 14.0, n)
    monthly = rng.normal(62, 22, n).clip(10)
    tickets = rng.poisson(1.4, n)
    contract = rng.integers(0, 3, n)
    autopay = rng.integers(0, 2, n)
    score = 0.9 - 0.05 * tenure + 0.018 * monthly + 0.55 * tickets - 0.8 * contract - 0.4 * autopay
    label = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)
    x = np.column_stack([tenure, monthly, tickets, contract == 0, contract == 1, autopay]).astype(np.float32)
    return x, label


def make_loaders(batch_size, seed):
    x, y = make_customers(5000, seed)
    cut = 4000
    mu, sd = x[:cut].mean(0), x[:cut].std(0)
    x = (x - mu) / sd
    gen = torch.Generator().manual_seed(seed)
    train = TensorDataset(torch.from_numpy(x[:cut]), torch.from_numpy(y[:cut]))
    test = TensorDataset(torch.from_numpy(x[cut:]), torch.from_numpy(y[cut:]))
    return (DataLoader(train, batch_size=batch_size, shuffle=True, generator=gen),
            DataLoader(test, batch_size=512))
