# %% [markdown]
# # Flu shots: who gets vaccinated?
# Multi-label problem, one sigmoid per column.

# %%
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(77)
torch.manual_seed(77)
TARGETS = ["h1n1", "seasonal"]

# %% data
n = 2000
features = rng.integers(0, 5, size=(n, 14)).astype(np.float32)
w1, w2 = rng.normal(size=14), rng.normal(size=14)
centred = features - features.mean(0)
table = {
    "h1n1": (centred @ w1 + rng.normal(size=n) > 1.5).astype(np.float32),
    "seasonal": (centred @ w2 + rng.normal(size=n) > 0.0).astype(np.float32),
}

# %% a quick look, how often do both occur together?
table["both"] = table["h1n1"] * table["seasonal"]
for name, column in table.items():
    print(f"{name:10s} {column.mean():.3f}")

# %%
labels = np.stack(list(table.values()), axis=1)
X_tr, X_va, Y_tr, Y_va = train_test_split(features, labels, test_size=0.25, random_state=77)
mu, sd = X_tr.mean(0), X_tr.std(0)
X_tr, X_va = (X_tr - mu) / sd, (X_va - mu) / sd
train_dl = DataLoader(TensorDataset(torch.from_numpy(X_tr), torch.from_numpy(Y_tr)), batch_size=64, shuffle=True)

# %%
model = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, len(TARGETS)))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

# %%
for epoch in range(6):
    model.train()
    for xb, yb in train_dl:
        opt.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(torch.from_numpy(X_va))).numpy()
    auc = [roc_auc_score(Y_va[:, k], p[:, k]) for k in range(len(TARGETS))]
    print(epoch, round(loss.item(), 4), dict(zip(TARGETS, np.round(auc, 4))))
