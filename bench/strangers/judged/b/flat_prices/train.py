# %% [markdown]
# # Flat prices
# Predict the log price from a handful of features; MAE and R2 (log units) on held-out flats.

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

rng = np.random.default_rng(2024)
torch.manual_seed(2024)

# %%
n = 1200
area = rng.normal(70, 20, n).clip(20, 160)
rooms = np.round(area / 25 + rng.normal(0, 0.5, n)).clip(1, 6)
dist = rng.exponential(4, n)
year = rng.integers(1900, 2023, n)
log_price = 0.012 * area + 0.05 * rooms - 0.06 * dist + 0.002 * (year - 1960) + rng.normal(0, 0.15, n)

X = torch.tensor(np.c_[area, rooms, dist, year], dtype=torch.float32)
y = torch.tensor(log_price, dtype=torch.float32)
X.shape, y.shape

# %%
full = TensorDataset(X, y)
train_ds, test_ds = random_split(full, [900, 300], generator=torch.Generator().manual_seed(0))
x_mean = X[train_ds.indices].mean(0)
x_std = X[train_ds.indices].std(0)

train_dl = DataLoader(train_ds, batch_size=64, shuffle=True)
test_dl = DataLoader(test_ds, batch_size=100)


# %%
class PriceNet(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.seq = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.seq((x - self.mean) / self.std)


net = PriceNet(x_mean, x_std)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
mse = nn.MSELoss()


# %%
def test_scores():
    net.eval()
    ps, ts = [], []
    with torch.no_grad():
        for xb, yb in test_dl:
            ps.append(net(xb))
            ts.append(yb)
    p, t = torch.cat(ps), torch.cat(ts)
    mae = (p - t).abs().mean()
    r2 = 1 - ((p - t) ** 2).mean() / t.var(unbiased=False)
    return mae.item(), r2.item()


# %%
history = []
for epoch in range(15):
    net.train()
    running = 0.0
    for xb, yb in train_dl:
        opt.zero_grad()
        loss = mse(net(xb).squeeze(1), yb)
        loss.backward()
        opt.step()
        running += loss.item() * len(yb)
    mae, r2 = test_scores()
    history.append((running / len(train_ds), mae, r2))
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d} | train mse {history[-1][0]:.4f} | test MAE {mae:.4f} | test R2 {r2:.3f}")

# %%
print("last test MAE in percent of price: %.1f%%" % (100 * (np.exp(history[-1][1]) - 1)))
