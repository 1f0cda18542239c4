# house listings comp, 5 fold MLP
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, TensorDataset

SEED = 42
np.random.seed(SEED)
torch.manual_seed(SEED)


def make_df(n=4000):
    # local stand-in for ../input/train.csv so that the notebook runs offline
    rng = np.random.default_rng(SEED)
    df = pd.DataFrame({
        "agent_id": rng.integers(0, 900, n),
        "district": rng.integers(0, 40, n),
        "sqm": rng.gamma(6, 14, n),
        "rooms": rng.integers(1, 7, n),
        "age": rng.integers(0, 80, n),
    })
    z = 0.02 * (df.sqm - 80) - 0.2 * (df.rooms - 3) - 0.015 * (df.age - 40) + rng.normal(0, 1.2, n)
    df["sold_fast"] = (z > 0).astype(int)
    return df


train = make_df()
TARGET = "sold_fast"
CATS = ["agent_id", "district"]
NUMS = ["sqm", "rooms", "age"]

# ---- feature engineering -------------------------------------------------
prior = train[TARGET].mean()
for c in CATS:
    stats = train.groupby(c)[TARGET].agg(["mean", "count"])
    smooth = (stats["mean"] * stats["count"] + prior * 2) / (stats["count"] + 2)
    train[c + "_te"] = train[c].map(smooth)
    train[c + "_cnt"] = train[c].map(train[c].value_counts())

FEATS = NUMS + [c + s for c in CATS for s in ("_te", "_cnt")]


class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def run_fold(fold, tr_idx, va_idx):
    tr, va = train.iloc[tr_idx], train.iloc[va_idx]
    mu, sd = tr[FEATS].mean(), tr[FEATS].std()
    Xtr = torch.tensor(((tr[FEATS] - mu) / sd).values, dtype=torch.float32)
    Xva = torch.tensor(((va[FEATS] - mu) / sd).values, dtype=torch.float32)
    ytr = torch.tensor(tr[TARGET].values, dtype=torch.float32)
    dl = DataLoader(TensorDataset(Xtr, ytr), batch_size=128, shuffle=True, drop_last=True)

    model = MLP(len(FEATS))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=8)
    lossf = nn.BCEWithLogitsLoss()
    for epoch in range(8):
        model.train()
        for xb, yb in dl:
            opt.zero_grad()
            loss = lossf(model(xb), yb)
            loss.backward()
            opt.step()
        sched.step()
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(Xva)).numpy()
    print(f"fold {fold}  auc {roc_auc_score(va[TARGET], p):.4f}")
    return p


oof = np.zeros(len(train))
skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=SEED)
for f, (a, b) in enumerate(skf.split(train, train[TARGET])):
    oof[b] = run_fold(f, a, b)
print("CV AUC:", round(roc_auc_score(train[TARGET], oof), 4))
