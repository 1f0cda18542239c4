"""Activity recognition on a Raspberry Pi (CPU only). Early stopping on the subject-wise validation set."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACTS = 5


def subject(seed, n=60, t=40):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(ACTS, (n,), generator=g)
    pace = 0.85 + 0.3 * torch.rand(1, generator=g)
    ph = 2 * math.pi * torch.rand(n, 1, generator=g)
    w = (0.2 + 0.15 * y[:, None]) * pace
    base = torch.sin(w * torch.arange(t) + ph)
    x = torch.stack([base, base * (0.3 + 0.2 * y[:, None]), torch.zeros_like(base)], 1)
    return x + 0.7 * torch.randn(n, 3, t, generator=g), y


def pool(seeds):
    xs, ys = zip(*(subject(s) for s in seeds))
    return TensorDataset(torch.cat(xs), torch.cat(ys))


class EarlyStopping:
    def __init__(self, patience=4, min_delta=1e-3):
        self.patience, self.min_delta = patience, min_delta
        self.best_loss, self.bad, self.weights, self.epoch = float("inf"), 0, None, -1

    def step(self, loss, model, epoch):
        if loss < self.best_loss - self.min_delta:
            self.best_loss, self.bad, self.epoch = loss, 0, epoch
            self.weights = {k: v.detach().cpu() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self, model):
        model.load_state_dict(self.weights)
        return model


def build():
    return nn.Sequential(
        nn.Conv1d(3, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(32, 64, 5, padding=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 20, 64), nn.ReLU(), nn.Linear(64, ACTS))


@torch.no_grad()
def score(model, loader):
    model.eval()
    ce = nn.CrossEntropyLoss(reduction="sum")
    loss = hit = n = 0
    for x, y in loader:
        out = model(x)
        loss += ce(out, y).item()
        hit += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hit / n


def main():
    torch.manual_seed(0)
    train = DataLoader(pool(range(8)), 32, shuffle=True)
    val = DataLoader(pool(range(100, 103)), 64)
    test = DataLoader(pool(range(200, 203)), 64)
    model = build()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    stopper = EarlyStopping()
    for epoch in range(40):
        model.train()
        for x, y in train:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        vl, va = score(model, val)
        print(f"{epoch:2d} val loss {vl:.3f} acc {va:.3f}")
        if stopper.step(vl, model, epoch):
            break
    stopper.restore(model)
    print("restored epoch", stopper.epoch, "val loss %.3f acc %.3f" % score(model, val),
          "| test loss %.3f acc %.3f" % score(model, test))


if __name__ == "__main__":
    main()
