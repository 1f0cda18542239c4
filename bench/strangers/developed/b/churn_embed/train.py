import argparse

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from config import TrainConfig
from features import NumericScaler, build_table


class ChurnNet(nn.Module):
    def __init__(self, d_in, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(d_in, hidden), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def prepare(cfg):
    x, y = build_table(cfg.data, cfg.seed)
    x_tr, x_va, y_tr, y_va = train_test_split(
        x, y, test_size=cfg.data.val_fraction, stratify=y, random_state=cfg.seed
    )
    scaler = NumericScaler().fit(x_tr)
    as_set = lambda a, b: TensorDataset(
        torch.from_numpy(scaler.transform(a)), torch.from_numpy(b).float()
    )
    return as_set(x_tr, y_tr), as_set(x_va, y_va)


@torch.no_grad()
def validate(net, loader):
    net.eval()
    scores, truth = [], []
    for xb, yb in loader:
        scores.append(torch.sigmoid(net(xb)).numpy())
        truth.append(yb.numpy())
    return roc_auc_score(np.concatenate(truth), np.concatenate(scores))


def run(cfg):
    torch.manual_seed(cfg.seed)
    np.random.seed(cfg.seed)
    tr, va = prepare(cfg)
    tr_loader = DataLoader(tr, cfg.batch_size, shuffle=True)
    va_loader = DataLoader(va, 512)
    net = ChurnNet(tr.tensors[0].shape[1], cfg.hidden)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(cfg.epochs):
        net.train()
        total, seen = 0.0, 0
        for xb, yb in tr_loader:
            opt.zero_grad(set_to_none=True)
            loss = criterion(net(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
            seen += len(xb)
        print(f"epoch {epoch}  train bce {total / seen:.4f}  val auc {validate(net, va_loader):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=TrainConfig.epochs)
    ap.add_argument("--lr", type=float, default=TrainConfig.lr)
    a = ap.parse_args()
    run(TrainConfig(epochs=a.epochs, lr=a.lr))
