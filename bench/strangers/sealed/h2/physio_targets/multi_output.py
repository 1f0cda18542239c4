"""Predict three physiological readings at once from exercise features."""
import logging
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import make_regression
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
LOG = logging.getLogger(__name__)


@dataclass
class Standardizer:
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def fit(cls, a):
        return cls(a.mean(axis=0, keepdims=True), a.std(axis=0, keepdims=True) + 1e-8)

    def __call__(self, a):
        return ((a - self.mean) / self.std).astype(np.float32)

    def invert(self, a):
        return a * self.std + self.mean


class Regressor:
    """scikit-learn like wrapper round a torch network."""

    def __init__(self, hidden=64, lr=5e-3, epochs=30, batch_size=50, seed=0):
        self.hidden, self.lr, self.epochs = hidden, lr, epochs
        self.batch_size, self.seed = batch_size, seed

    def _build(self, n_in, n_out):
        return nn.Sequential(
            nn.Linear(n_in, self.hidden), nn.ELU(),
            nn.Linear(self.hidden, self.hidden), nn.ELU(),
            nn.Linear(self.hidden, n_out),
        )

    def fit(self, X, Y):
        torch.manual_seed(self.seed)
        self.sx_, self.sy_ = Standardizer.fit(X), Standardizer.fit(Y)
        x, y = torch.from_numpy(self.sx_(X)), torch.from_numpy(self.sy_(Y))
        self.net_ = self._build(x.size(1), y.dim())
        opt = torch.optim.Adam(self.net_.parameters(), lr=self.lr)
        loss_fn = nn.SmoothL1Loss()
        for epoch in range(self.epochs):
            perm = torch.randperm(len(x))
            running = 0.0
            for start in range(0, len(x), self.batch_size):
                idx = perm[start:start + self.batch_size]
                opt.zero_grad()
                loss = loss_fn(self.net_(x[idx]), y[idx])
                loss.backward()
                opt.step()
                running += loss.item() * len(idx)
            if (epoch + 1) % 10 == 0:
                LOG.info("epoch %d loss %.5f", epoch + 1, running / len(x))
        return self

    @torch.no_grad()
    def predict(self, X):
        self.net_.eval()
        return self.sy_.invert(self.net_(torch.from_numpy(self.sx_(X))).numpy())


def main():
    X, Y = make_regression(600, n_features=10, n_informative=8, n_targets=3, noise=5.0, random_state=1)
    names = ["pulse", "systolic", "diastolic"]
    split = 450
    reg = Regressor().fit(X[:split], Y[:split])
    err = reg.predict(X[split:]) - Y[split:]
    for name, e, s in zip(names, np.sqrt((err ** 2).mean(0)), Y.std(0)):
        LOG.info("%-10s RMSE %.2f (target std %.1f)", name, e, s)


if __name__ == "__main__":
    main()
