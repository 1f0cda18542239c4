import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def friedman(batch, seed=0):
    X, y = make_friedman1(1500, n_features=10, noise=0.5, random_state=seed)
    y = (y - y.mean()) / y.std()
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1))
    train, valid = random_split(data, [1200, 300], generator=torch.Generator().manual_seed(seed))
    return DataLoader(train, batch, shuffle=True), DataLoader(valid, 300)


def regressor(width):
    return nn.Sequential(nn.Linear(10, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
