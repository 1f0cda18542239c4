import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


@contextlib.contextmanager
def frozen(module: nn.Module):
    """Keep `module` out of training inside the block, then put every flag back."""
    before = (p.requires_grad for p in module.parameters())
    for p in module.parameters():
        p.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), before):
            p.requires_grad_(flag)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))


def run_epoch(net, loader, opt):
    net.train()
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def loaders(x, y, seed):
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    k = int(0.8 * len(y))
    return (
        DataLoader(TensorDataset(x[order[:k]], y[order[:k]]), batch_size=32, shuffle=True),
        DataLoader(TensorDataset(x[order[k:]], y[order[k:]]), batch_size=128),
    )


def main():
    torch.manual_seed(31)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    low = y < 5
    source, source_val = loaders(x[low], y[low], 0)
    target, target_val = loaders(x[~low], y[~low] - 5, 1)

    net = Net(5)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(6):
        run_epoch(net, source, opt)
    print(f"source {accuracy(net, source_val):.3f}")

    net.head = nn.Linear(32, 5)
    with frozen(net.body):
        warm = torch.optim.Adam(net.head.parameters(), lr=5e-3)
        for _ in range(2):
            run_epoch(net, target, warm)
    print(f"target after head warm-up {accuracy(net, target_val):.3f}")

    full = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(6):
        loss = run_epoch(net, target, full)
        print(f"fine-tune {epoch}: loss {loss:.4f} acc {accuracy(net, target_val):.3f}")


if __name__ == "__main__":
    main()
