from dataclasses import dataclass, field

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from callbacks import Callback, ConsoleLogger, EarlyStopping


@dataclass
class Loop:
    net: nn.Module
    optimizer: torch.optim.Optimizer
    callbacks: list[Callback] = field(default_factory=list)
    max_epochs: int = 80
    epoch: int = 0
    stop: bool = False

    def emit(self, event, *args):
        for cb in self.callbacks:
            getattr(cb, event)(self, *args)

    def fit(self, train, val):
        for self.epoch in range(self.max_epochs):
            self.net.train()
            for x, y in train:
                self.optimizer.zero_grad()
                nn.functional.l1_loss(self.net(x), y).backward()
                self.optimizer.step()
            self.emit("on_validation_end", {"val_mae": self.mae(val)})
            if self.stop:
                break
        self.emit("on_fit_end")
        return self.net

    @torch.no_grad()
    def mae(self, loader):
        self.net.eval()
        tot = sum((self.net(x) - y).abs().sum().item() for x, y in loader)
        return tot / len(loader.dataset)


def splits(seed=3):
    d = load_diabetes()
    x = torch.tensor(d.data, dtype=torch.float32)
    y = torch.tensor(d.target, dtype=torch.float32)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    tr, va, te = order[:280], order[280:360], order[360:]
    mx, sx, my, sy = x[tr].mean(0), x[tr].std(0), y[tr].mean(), y[tr].std()
    return [TensorDataset((x[i] - mx) / sx, (y[i] - my) / sy) for i in (tr, va, te)]


if __name__ == "__main__":
    torch.manual_seed(3)
    train, val, test = splits()
    net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    loop = Loop(net, torch.optim.Adam(net.parameters(), lr=3e-3), [ConsoleLogger(), EarlyStopping(patience=10)])
    loop.fit(DataLoader(train, 28, shuffle=True), DataLoader(val, 80))
    print(f"test mae {loop.mae(DataLoader(test, 82)):.4f}")
