from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import balanced_accuracy_score

from agc import adaptive_clip_


@dataclass
class HParams:
    lr: float = 0.1
    momentum: float = 0.9
    agc: float = 0.02
    epochs: int = 6
    batch: int = 50
    channels: int = 4


def simulate(n, channels, seed, steps=40):
    rng = np.random.default_rng(seed)
    t = np.arange(steps)
    label = rng.integers(0, 3, n)
    sig = np.sin(t / rng.uniform(2, 5, (n, 1, 1)) + rng.uniform(0, 6, (n, channels, 1)))
    for i in range(n):
        c = rng.integers(channels)
        if label[i] == 1:
            sig[i, c, rng.integers(5, 30):] = sig[i, c, 0]
        elif label[i] == 2:
            sig[i, c] += 3 * (rng.random(steps) < 0.12)
    sig += rng.normal(0, 0.1, sig.shape)
    return torch.tensor(sig, dtype=torch.float32), torch.tensor(label)


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.path = nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 3, padding=1), nn.ReLU(), nn.Conv1d(c, c, 3, padding=1))

    def forward(self, x):
        return x + 0.5 * self.path(x)


def build(hp):
    return nn.Sequential(nn.Conv1d(hp.channels, 24, 5, padding=2), ResBlock(24), ResBlock(24), nn.ReLU(),
                         nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(24, 3))


def main(hp):
    torch.manual_seed(2)
    xtr, ytr = simulate(900, hp.channels, 0)
    xva, yva = simulate(300, hp.channels, 1)
    net = build(hp)
    opt = torch.optim.SGD(net.parameters(), lr=hp.lr, momentum=hp.momentum)
    ce = nn.CrossEntropyLoss()
    for epoch in range(hp.epochs):
        net.train()
        running = []
        for idx in torch.randperm(len(xtr)).split(hp.batch):
            opt.zero_grad()
            loss = ce(net(xtr[idx]), ytr[idx])
            loss.backward()
            adaptive_clip_(net.parameters(), hp.agc)
            opt.step()
            running.append(loss.item())
        net.eval()
        with torch.no_grad():
            bal = balanced_accuracy_score(yva, net(xva).argmax(1))
        print(f"epoch {epoch + 1}: loss {np.mean(running):.4f} balanced acc {bal:.3f}")


if __name__ == "__main__":
    main(HParams())
