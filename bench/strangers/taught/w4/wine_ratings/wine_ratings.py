"""Wine quality (integer score 3..9) - team baseline, Playground competition.

Expects data/train.csv if present, else makes a table with the same columns.
"""
import csv
import os

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

SEED, FOLDS, EPOCHS, BS = 2023, 3, 15, 64


def read_table():
    if os.path.exists("data/train.csv"):
        with open("data/train.csv") as f:
            rows = list(csv.reader(f))[1:]
        arr = np.array(rows, dtype=np.float32)
        return arr[:, 1:-1], arr[:, -1]
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(1800, 11)).astype(np.float32)
    q = 6 + 0.9 * X[:, 10] - 0.7 * X[:, 1] + 0.4 * X[:, 9] * X[:, 4] + rng.normal(scale=0.4, size=1800)
    return X, np.clip(np.rint(q), 3, 9).astype(np.float32)


class WineNet(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_features, 64), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(64, 32), nn.GELU(),
            nn.Linear(32, 1),
        )
        nn.init.constant_(self.net[-1].bias, 6.0)

    def forward(self, x):
        score = self.net(x).squeeze(-1)
        # quality is a whole number between 3 and 9
        return torch.round(score).clamp(3, 9)


def run_fold(X_tr, y_tr, X_va, y_va):
    scaler = StandardScaler().fit(X_tr)
    X_tr = torch.tensor(scaler.transform(X_tr), dtype=torch.float32)
    X_va = torch.tensor(scaler.transform(X_va), dtype=torch.float32)
    y_tr = torch.tensor(y_tr)

    model = WineNet(X_tr.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, epochs=EPOCHS, steps_per_epoch=-(-len(X_tr) // BS))
    for epoch in range(EPOCHS):
        model.train()
        for idx in torch.randperm(len(X_tr)).split(BS):
            loss = nn.functional.mse_loss(model(X_tr[idx]), y_tr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()

    model.eval()
    with torch.no_grad():
        pred = model(X_va).numpy()
    return cohen_kappa_score(y_va.astype(int), pred.astype(int), weights="quadratic")


if __name__ == "__main__":
    torch.manual_seed(SEED)
    X, y = read_table()
    scores = []
    for k, (tr, va) in enumerate(KFold(FOLDS, shuffle=True, random_state=SEED).split(X)):
        scores.append(run_fold(X[tr], y[tr], X[va], y[va]))
        print(f"fold {k}: QWK {scores[-1]:.4f}")
    print(f"CV {np.mean(scores):.4f}")
