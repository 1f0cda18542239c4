"""Wine cultivar classification (UCI wine, 13 lab measurements, 3 cultivars)."""
import copy
import logging
import os
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("wine")


@dataclass
class Config:
    seed: int = int(os.environ.get("SEED", "0"))
    hidden: int = 32
    dropout: float = 0.2
    lr: float = 1.5e-3
    weight_decay: float = 1e-3
    batch_size: int = 16
    max_epochs: int = 70
    patience: int = 10
    ckpt: str = "best.pt"


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class WineDataset(Dataset):
    """Rows of the wine table, standardised with the statistics it is given."""

    def __init__(self, features, targets, mean, std):
        self.features = torch.as_tensor((features - mean) / std, dtype=torch.float32)
        self.targets = torch.as_tensor(targets, dtype=torch.long)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, idx):
        return self.features[idx], self.targets[idx]


def make_datasets():
    X, y = load_wine(return_X_y=True)
    # the split is fixed, only the training is seeded
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=3)
    X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.25, stratify=y_tr, random_state=3)
    mean, std = X_tr.mean(axis=0), X_tr.std(axis=0)
    return (WineDataset(X_tr, y_tr, mean, std),
            WineDataset(X_va, y_va, mean, std),
            WineDataset(X_te, y_te, mean, std))


class WineMLP(nn.Module):
    def __init__(self, n_in, n_out, hidden, dropout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, n_out),
        )

    def forward(self, x):
        return self.net(x)


class EarlyStopping:
    def __init__(self, patience, min_delta=5e-3):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad_epochs = 0

    def step(self, value):
        """Returns True when the value is a new best."""
        if value < self.best - self.min_delta:
            self.best = value
            self.bad_epochs = 0
            return True
        self.bad_epochs += 1
        return False

    @property
    def should_stop(self):
        return self.bad_epochs >= self.patience


class Trainer:
    def __init__(self, model, cfg):
        self.model = model
        self.cfg = cfg
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, mode="min", factor=0.5, patience=8)
        self.stopper = EarlyStopping(cfg.patience)
        self.best_state = None

    def train_one_epoch(self, loader):
        self.model.train()
        running, seen = 0.0, 0
        for features, targets in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(features), targets)
            loss.backward()
            self.optimizer.step()
            running += loss.item() * targets.size(0)
            seen += targets.size(0)
        return running / seen

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total_loss, correct, seen = 0.0, 0, 0
        for features, targets in loader:
            logits = self.model(features)
            total_loss += self.criterion(logits, targets).item() * targets.size(0)
            correct += (logits.argmax(dim=1) == targets).sum().item()
            seen += targets.size(0)
        return total_loss / seen, correct / seen

    def save(self, epoch):
        torch.save({"epoch": epoch,
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "val_loss": self.stopper.best}, self.cfg.ckpt)

    def fit(self, train_loader, val_loader):
        for epoch in range(1, self.cfg.max_epochs + 1):
            train_loss = self.train_one_epoch(train_loader)
            val_loss, val_acc = self.evaluate(val_loader)
            self.scheduler.step(val_loss)
            log.info("epoch %02d | train_loss %.4f | val_loss %.4f | val_acc %.4f",
                     epoch, train_loss, val_loss, val_acc)
            if self.stopper.step(val_loss):
                self.best_state = copy.deepcopy(self.model.state_dict())
                self.save(epoch)
            if self.stopper.should_stop:
                log.info("no improvement for %d epochs, stopping", self.cfg.patience)
                break
        self.model.load_state_dict(self.best_state)


def main():
    cfg = Config()
    seed_everything(cfg.seed)
    train_set, val_set, test_set = make_datasets()
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    test_loader = DataLoader(test_set, batch_size=64)
    log.info("train %d  val %d  test %d", len(train_set), len(val_set), len(test_set))

    model = WineMLP(13, 3, cfg.hidden, cfg.dropout)
    trainer = Trainer(model, cfg)
    trainer.fit(train_loader, val_loader)
    test_loss, test_acc = trainer.evaluate(test_loader)
    log.info("test_loss %.4f | test_acc %.4f", test_loss, test_acc)


if __name__ == "__main__":
    main()
