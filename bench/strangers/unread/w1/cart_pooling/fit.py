import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

from model import SpendModel

N_ITEMS, SLOTS = 30, 8


class Baskets(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        price = np.linspace(-1, 1, N_ITEMS + 1)
        size = rng.integers(0, SLOTS + 1, n)
        self.basket = np.zeros((n, SLOTS), dtype=np.int64)
        for row, k in zip(self.basket, size):
            row[:k] = rng.integers(1, N_ITEMS + 1, k)
        self.customer = rng.normal(size=(n, 2)).astype(np.float32)
        mean = np.where(size > 0, (price[self.basket] * (self.basket > 0)).sum(1) / np.maximum(size, 1), 0.7)
        self.spend = (mean + 0.3 * self.customer[:, 0] + 0.05 * rng.normal(size=n)).astype(np.float32)

    def __len__(self):
        return len(self.spend)

    def __getitem__(self, i):
        return self.basket[i], self.customer[i], self.spend[i:i + 1]


def epoch(net, loader, criterion, opt=None):
    net.train(opt is not None)
    total = 0.0
    with torch.set_grad_enabled(opt is not None):
        for basket, customer, spend in loader:
            loss = criterion(net(basket, customer), spend)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(spend)
    return total / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(2)
    data = Baskets(2500, 3)
    cut = torch.randperm(len(data)).tolist()
    train = DataLoader(Subset(data, cut[:2000]), 50, shuffle=True)
    val = DataLoader(Subset(data, cut[2000:]), 250)
    net, crit = SpendModel(N_ITEMS), nn.MSELoss()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for e in range(6):
        print(f"{e} train {epoch(net, train, crit, opt):.4f} val {epoch(net, val, crit):.4f}")
