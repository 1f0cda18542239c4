"""30-day readmission, breast ward pilot. Small data: 569 rows."""
import copy
from dataclasses import dataclass

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    batch_size: int = 128
    lr: float = 1e-3
    epochs: int = 60
    patience: int = 8
    seed: int = 7


class Meter:
    """Running average of a scalar."""

    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, value, k):
        self.total += value * k
        self.n += k

    @property
    def avg(self):
        return self.total / max(self.n, 1)


def prepare(seed):
    x, y = load_breast_cancer(return_X_y=True)
    x_tr, x_rest, y_tr, y_rest = train_test_split(x, y, test_size=0.3, stratify=y, random_state=seed)
    x_va, x_te, y_va, y_te = train_test_split(x_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=seed)
    sc = StandardScaler().fit(x_tr)
    out = []
    for a, b in ((x_tr, y_tr), (x_va, y_va), (x_te, y_te)):
        out.append(TensorDataset(torch.tensor(sc.transform(a), dtype=torch.float32),
                                 torch.tensor(b, dtype=torch.float32)))
    return out


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    train_ds, val_ds, test_ds = prepare(cfg.seed)
    # batch norm does not like a last batch of one row
    loader_args = dict(batch_size=cfg.batch_size, drop_last=True)
    train_loader = DataLoader(train_ds, shuffle=True, **loader_args)
    val_loader = DataLoader(val_ds, shuffle=False, **loader_args)

    net = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    bce = nn.BCEWithLogitsLoss()
    best, best_state, wait = float("inf"), None, 0

    for epoch in range(cfg.epochs):
        net.train()
        tr, va = Meter(), Meter()
        for x, y in train_loader:
            loss = bce(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tr.add(loss.item(), len(y))
        net.eval()
        with torch.no_grad():
            for x, y in val_loader:
                va.add(bce(net(x).squeeze(1), y).item(), len(y))
        print(f"epoch {epoch:2d} train {tr.avg:.4f} val {va.avg:.4f}")
        if va.avg < best:
            best, best_state, wait = va.avg, copy.deepcopy(net.state_dict()), 0
        else:
            wait += 1
            if wait >= cfg.patience:
                print("early stop")
                break

    net.load_state_dict(best_state)
    net.eval()
    x, y = test_ds.tensors
    with torch.no_grad():
        acc = ((net(x).squeeze(1) > 0).float() == y).float().mean().item()
    print(f"test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
