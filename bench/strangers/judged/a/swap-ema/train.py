"""Own little trainer: EMA of the weights, evaluated by swapping them in, early stopping on validation."""
from __future__ import annotations

import contextlib
import copy
import dataclasses as dc

import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn


@dc.dataclass(frozen=True)
class Settings:
    width: int = 64
    lr: float = 3e-3
    ema: float = 0.98
    max_epochs: int = 20
    patience: int = 4
    batch: int = 50
    seed: int = 40


class EMA:
    def __init__(self, model: nn.Module, decay: float):
        self.decay, self.updates = decay, 0
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for k, v in model.state_dict().items():
            if v.dtype.is_floating_point:
                self.shadow[k].lerp_(v, 1 - d)
            else:
                self.shadow[k].copy_(v)

    @contextlib.contextmanager
    def applied_to(self, model: nn.Module):
        backup = copy.deepcopy(model.state_dict())
        model.load_state_dict(self.shadow)
        try:
            yield model
        finally:
            model.load_state_dict(backup)


class Fitter:
    def __init__(self, s: Settings, dim: int, classes: int):
        self.s = s
        self.model = nn.Sequential(nn.Linear(dim, s.width), nn.BatchNorm1d(s.width), nn.ReLU(),
                                   nn.Dropout(0.3), nn.Linear(s.width, classes))
        nn.init.zeros_(self.model[-1].weight)        # start from uniform predictions
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=s.lr, weight_decay=0.02)
        self.ema = EMA(self.model, s.ema)

    def _step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)         # clean for the next call
        self.ema.update(self.model)
        return loss.detach()

    @torch.no_grad()
    def score(self, x, y):
        with self.ema.applied_to(self.model) as m:
            m.eval()
            logits = m(x)
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def fit(self, train, valid):
        x, y = train
        best, waited, keep = float("inf"), 0, None
        for epoch in range(self.s.max_epochs):
            self.model.train()
            running = torch.stack([self._step(x[i], y[i]) for i in torch.randperm(len(x)).split(self.s.batch)])
            vloss, vacc = self.score(*valid)
            print(f"{epoch:02d} train {running.mean():.3f} | ema valid {vloss:.3f} {vacc:.3f}")
            if vloss < best - 1e-4:
                best, waited, keep = vloss, 0, copy.deepcopy(self.ema.shadow)
            elif (waited := waited + 1) >= self.s.patience:
                break
        self.ema.shadow = keep
        return self


def main():
    s = Settings()
    torch.manual_seed(s.seed)
    X, y = make_classification(1200, 20, n_informative=8, n_classes=3, class_sep=1.2, random_state=s.seed)
    xa, xt, ya, yt = train_test_split(X, y, test_size=200, random_state=s.seed)
    xa, xv, ya, yv = train_test_split(xa, ya, test_size=200, random_state=s.seed)
    T = lambda a, b: (torch.tensor(a, dtype=torch.float32), torch.tensor(b))
    fitter = Fitter(s, X.shape[1], 3).fit(T(xa, ya), T(xv, yv))
    print("test", fitter.score(*T(xt, yt)))


if __name__ == "__main__":
    main()
