"""Curriculum by blur (Sinha et al.): start with smooth images, sharpen them from stage to stage."""
from functools import lru_cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


def gaussian_kernel(sigma, size=5):
    if sigma == 0:
        k = np.zeros(size)
        k[size // 2] = 1.0
        return k
    r = np.arange(size) - size // 2
    k = np.exp(-0.5 * (r / sigma) ** 2)
    return k / k.sum()


class BlurredDigits(Dataset):
    def __init__(self, rows, sigma=0.0):
        bunch = load_digits()
        self.images, self.targets = bunch.images[rows] / 16.0, bunch.target[rows]
        self.sigma = sigma

    def set_sigma(self, sigma):
        self.sigma = sigma

    def __len__(self):
        return len(self.targets)

    @lru_cache(maxsize=None)
    def _render(self, index):
        k = gaussian_kernel(self.sigma)
        img = np.apply_along_axis(np.convolve, 0, self.images[index], k, mode="same")
        img = np.apply_along_axis(np.convolve, 1, img, k, mode="same")
        return torch.tensor(img, dtype=torch.float32).unsqueeze(0)

    def __getitem__(self, index):
        return self._render(index), int(self.targets[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2), nn.ReLU())
        self.fc = nn.Linear(16 * 9, 10)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    good = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return good / len(loader.dataset)


def main():
    torch.manual_seed(0)
    rows = np.random.default_rng(0).permutation(1797)
    train_set, test_set = BlurredDigits(rows[:1200]), BlurredDigits(rows[1200:])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=300)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for sigma, epochs in [(2.0, 2), (1.0, 2), (0.0, 3)]:
        train_set.set_sigma(sigma)
        for epoch in range(epochs):
            net.train()
            total = 0.0
            for x, y in train_loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"sigma {sigma:.1f} epoch {epoch}  train loss {total / len(train_loader):.3f}  "
                  f"sharp test acc {evaluate(net, test_loader):.3f}")


if __name__ == "__main__":
    main()
