"""Fabriken für Netz, Optimierer und Daten."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def baue_netz(n_ein, n_aus, cfg):
    return nn.Sequential(
        nn.Linear(n_ein, cfg["hidden"]), nn.ReLU(), nn.Dropout(cfg["dropout"]),
        nn.Linear(cfg["hidden"], n_aus),
    )


def baue_optimierer(parameter, cfg):
    lr = cfg.get("lr", 1e-3)
    decay = cfg.get("weight_decay", 0.0)
    if cfg["name"] == "sgd":
        return torch.optim.SGD(parameter, lr=lr, momentum=cfg.get("momentum", 0.0), weight_decay=decay)
    if cfg["name"] == "adam":
        return torch.optim.Adam(parameter, lr=lr, weight_decay=decay)
    raise KeyError(cfg["name"])


def baue_daten(batch, seed):
    rng = np.random.default_rng(seed)
    zentren = rng.normal(size=(6, 16))
    def zieh(n):
        y = rng.integers(0, 6, n)
        x = zentren[y] * 1.2 + rng.normal(size=(n, 16))
        return x, y
    (x_tr, y_tr), (x_te, y_te) = zieh(800), zieh(300)
    m, s = x_tr.mean(0), x_tr.std(0)       # nur aus den Trainingsdaten
    als_satz = lambda x, y: TensorDataset(torch.tensor((x - m) / s, dtype=torch.float32), torch.tensor(y))
    return (DataLoader(als_satz(x_tr, y_tr), batch, shuffle=True),
            DataLoader(als_satz(x_te, y_te), 128))
