"""Churn model as it runs in the nightly batch job."""
import json
import logging
from pathlib import Path

import torch
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")
logger = logging.getLogger("churn")


class Serializable:
    """Remembers the constructor arguments so that a model can be rebuilt from disk."""

    def __init__(self, **hparams):
        self.hparams = dict(hparams)

    def save(self, folder):
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hparams.json").write_text(json.dumps(self.hparams))
        torch.save(self.state_dict(), folder / "weights.pt")

    @classmethod
    def load(cls, folder):
        folder = Path(folder)
        model = cls(**json.loads((folder / "hparams.json").read_text()))
        model.load_state_dict(torch.load(folder / "weights.pt"))
        return model


class ChurnNet(Serializable, nn.Module):
    def __init__(self, n_features, hidden=64, dropout=0.1):
        super().__init__(n_features=n_features, hidden=hidden, dropout=dropout)
        self.norm = nn.BatchNorm1d(n_features)
        self.layers = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden // 2),
            nn.ReLU(),
        )
        self.score = nn.Linear(hidden // 2, 1)

    def forward(self, x):
        return self.score(self.layers(self.norm(x))).squeeze(1)


class Fitter:
    def __init__(self, model, lr=1e-3, pos_weight=None):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(loader.dataset)

    @torch.no_grad()
    def auc(self, x, y):
        self.model.eval()
        return roc_auc_score(y.numpy(), self.model(x).numpy())


def customers(n=2000):
    X, y = make_classification(n, n_features=20, n_informative=8, weights=[0.8], random_state=5)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    cut = int(0.8 * n)
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def main():
    torch.manual_seed(0)
    train, holdout = customers()
    loader = DataLoader(TensorDataset(*train), batch_size=64, shuffle=True)
    model = ChurnNet(n_features=train[0].shape[1])
    fitter = Fitter(model, pos_weight=(1 - train[1]).sum() / train[1].sum())
    for ep in range(6):
        loss = fitter.epoch(loader)
        logger.info("epoch %d loss %.4f holdout AUC %.4f", ep, loss, fitter.auc(*holdout))
    model.save("/tmp/churn_model")


if __name__ == "__main__":
    main()
