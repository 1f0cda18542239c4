import torch
from sklearn.datasets import make_friedman1
from torch.utils.data import TensorDataset


def friedman(n, seed):
    x, y = make_friedman1(n, n_features=10, noise=0.5, random_state=seed)
    y = (y - 14.4) / 4.9
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
