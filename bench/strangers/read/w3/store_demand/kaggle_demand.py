#!/usr/bin/env python
# Store item demand, shared trunk + one head per store
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SEED, N_STORES, N_FEATS = 2024, 5, 10
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


class HeadBank:
    def __init__(self, n_heads, dim, hidden=24):
        self.heads = {
            s: nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, 1)) for s in range(n_heads)
        }

    def predict(self, h, store):
        out = h.new_zeros(len(h))
        for s, head in self.heads.items():
            rows = (store == s).nonzero(as_tuple=True)[0]
            if len(rows):
                out = out.index_put((rows,), head(h[rows]).squeeze(-1))
        return out


class DemandNet(nn.Module):
    def __init__(self, n_feats, n_stores, dim=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_feats, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Dropout(0.05), nn.Linear(dim, dim), nn.ReLU()
        )
        self.bank = HeadBank(n_stores, dim)

    def forward(self, x, store):
        return self.bank.predict(self.trunk(x), store)


# ---------------------------------------------------------------- data
n = 3000
store = rng.integers(0, N_STORES, n)
X = rng.standard_normal((n, N_FEATS)).astype(np.float32)
coef = rng.standard_normal((N_STORES, N_FEATS)) * 0.5
y = np.log1p(np.exp((X * coef[store]).sum(1) + 1.0)) + 0.1 * rng.standard_normal(n)
tr, va = np.arange(n) < 2400, np.arange(n) >= 2400
mu, sd = y[tr].mean(), y[tr].std()
y = ((y - mu) / sd).astype(np.float32)


def loader(mask, shuffle):
    ds = TensorDataset(torch.from_numpy(X[mask]), torch.from_numpy(store[mask]), torch.from_numpy(y[mask]))
    return DataLoader(ds, batch_size=100, shuffle=shuffle)


dl_tr, dl_va = loader(tr, True), loader(va, False)

# ---------------------------------------------------------------- train
model = DemandNet(N_FEATS, N_STORES)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
for epoch in range(8):
    model.train()
    for xb, sb, yb in dl_tr:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb, sb), yb)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        se = sum(((model(xb, sb) - yb) ** 2).sum().item() for xb, sb, yb in dl_va)
    print(f"epoch {epoch}  rmse {np.sqrt(se / va.sum()) * sd:.4f}")
