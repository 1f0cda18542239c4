"""Bird calls, one dimensional conv net. Repeatable: the loader gets a seeded generator, the workers derive from it."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

SR, SECONDS, N_SPECIES = 4000, 0.25, 5


class Calls(Dataset):
    def __init__(self, n, train):
        rs = np.random.RandomState(0 if train else 1)
        t = np.arange(int(SR * SECONDS)) / SR
        self.y = rs.randint(N_SPECIES, size=n)
        f0 = 300 + 180 * self.y + rs.randn(n) * 15
        self.x = np.sin(2 * np.pi * (f0[:, None] * t + 120 * t ** 2)).astype(np.float32)
        self.train = train
        self._rng = None

    @property
    def rng(self):
        # must not be made in __init__: the workers would all start from the same copy
        if self._rng is None:
            info = get_worker_info()
            self._rng = np.random.default_rng(info.seed if info else torch.initial_seed())
        return self._rng

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.train:
            x = np.roll(x, self.rng.integers(len(x)))
            x = x * self.rng.uniform(0.5, 1.5)
            x = x + self.rng.normal(0, 0.2, x.shape)
            if random.random() < 0.3:
                a = np.random.randint(0, len(x) - 100)
                x[a:a + 100] = 0
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))[None], int(self.y[i])


def seed_worker(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


def accuracy(net, loader):
    net.eval()
    with torch.no_grad():
        hits = [(net(x).argmax(1) == y) for x, y in loader]
    return torch.cat(hits).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(3)
    g = torch.Generator()
    g.manual_seed(3)
    train = DataLoader(Calls(400, True), 32, shuffle=True, num_workers=2, worker_init_fn=seed_worker, generator=g)
    test = DataLoader(Calls(150, False), 64)
    net = nn.Sequential(
        nn.Conv1d(1, 16, 31, stride=4), nn.BatchNorm1d(16), nn.ReLU(),
        nn.Conv1d(16, 32, 15, stride=4), nn.BatchNorm1d(32), nn.ReLU(),
        nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(32, N_SPECIES))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    lossf = nn.CrossEntropyLoss()
    for epoch in range(4):
        net.train()
        s = 0.0
        for x, y in train:
            loss = lossf(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            s += loss.item() * len(y)
        print(f"epoch {epoch} loss {s / 400:.3f} test acc {accuracy(net, test):.3f}")
