import logging
import math
import sys

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
logger = logging.getLogger("loanrisk")


def stream_batches(x, y, size, rng=None):
    """Yield tensors batch by batch so the full table never has to be on the device."""
    order = np.arange(len(x)) if rng is None else rng.permutation(len(x))
    for start in range(0, len(x), size):
        take = order[start:start + size]
        yield torch.from_numpy(x[take]), torch.from_numpy(y[take])


class EarlyStopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, math.inf, 0

    def update(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class RiskTrainer:
    def __init__(self, model, lr, patience):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.loss = nn.BCEWithLogitsLoss()
        self.stopper = EarlyStopper(patience)

    def train_one(self, batches):
        self.model.train()
        for xb, yb in batches:
            self.optimizer.zero_grad()
            self.loss(self.model(xb).squeeze(-1), yb).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, batches):
        self.model.eval()
        loss_sum, rows = 0.0, 0
        for xb, yb in batches:
            loss_sum += self.loss(self.model(xb).squeeze(-1), yb).item() * len(yb)
            rows += len(yb)
        return loss_sum / max(rows, 1)

    def fit(self, x, y, valid, epochs, size):
        rng = np.random.default_rng(0)
        for epoch in range(1, epochs + 1):
            self.train_one(stream_batches(x, y, size, rng))
            vloss = self.validate(valid)
            logger.info("epoch %02d valid loss %.4f", epoch, vloss)
            if self.stopper.update(vloss):
                logger.info("no improvement for %d epochs, stopping", self.stopper.patience)
                break


def main():
    torch.manual_seed(0)
    x, y = make_classification(3000, 24, n_informative=8, flip_y=0.05, random_state=4)
    xt, xv, yt, yv = train_test_split(x, y, test_size=0.2, random_state=4, stratify=y)
    scaler = StandardScaler().fit(xt)
    xt, xv = (scaler.transform(a).astype(np.float32) for a in (xt, xv))
    yt, yv = yt.astype(np.float32), yv.astype(np.float32)

    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))
    trainer = RiskTrainer(model, lr=0.01, patience=4)
    valid = stream_batches(xv, yv, 256)
    trainer.fit(xt, yt, valid, epochs=30, size=64)
    logger.info("best validation loss %.4f", trainer.stopper.best)


if __name__ == "__main__":
    main()
