from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass

import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ema:
    """Shadow copy of a module. Floating tensors are averaged, everything else is copied."""

    def __init__(self, module: nn.Module, decay: float):
        self.decay = decay
        self.shadow = copy.deepcopy(module).eval().requires_grad_(False)
        self.updates = 0

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        source = module.state_dict()
        for name, value in self.shadow.state_dict().items():
            if value.is_floating_point():
                value.lerp_(source[name], 1 - d)
            else:
                value.copy_(source[name])


@contextlib.contextmanager
def evaluating(*modules: nn.Module):
    modes = [m.training for m in modules]
    try:
        for m in modules:
            m.eval()
        with torch.no_grad():
            yield
    finally:
        for m, mode in zip(modules, modes):
            m.train(mode)


@dataclass
class Settings:
    lr: float = 0.05
    epochs: int = 8
    batch: int = 50
    decay: float = 0.98
    seed: int = 3


class Trainer:
    def __init__(self, model: nn.Module, s: Settings):
        self.s, self.model = s, model
        self.ema = Ema(model, s.decay)
        self.opt = torch.optim.SGD(model.parameters(), lr=s.lr, momentum=0.9)
        self.criterion = nn.BCEWithLogitsLoss()

    def fit(self, train: DataLoader, val: DataLoader) -> None:
        self.model.train()
        for epoch in range(self.s.epochs):
            for x, y in train:
                self.opt.zero_grad()
                self.criterion(self.model(x).squeeze(-1), y).backward()
                self.opt.step()
                self.ema.update(self.model)
            raw, avg = self.accuracy(self.model, val), self.accuracy(self.ema.shadow, val)
            print(f"epoch {epoch} raw {raw:.3f} averaged {avg:.3f}")

    def accuracy(self, net: nn.Module, loader: DataLoader) -> float:
        hits = 0
        with evaluating(net):
            for x, y in loader:
                hits += ((net(x).squeeze(-1) > 0) == (y > 0.5)).sum().item()
        return hits / len(loader.dataset)


def moons(n: int, seed: int) -> TensorDataset:
    x, y = make_moons(n, noise=0.2, random_state=seed)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


if __name__ == "__main__":
    s = Settings()
    torch.manual_seed(s.seed)
    net = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(),
                        nn.Linear(32, 1))
    trainer = Trainer(net, s)
    trainer.fit(DataLoader(moons(1000, 1), s.batch, shuffle=True), DataLoader(moons(300, 2), 100))
    torch.save({"model": net.state_dict(), "ema": trainer.ema.shadow.state_dict()}, "/tmp/moons_w1.pt")
