# Quantile forecasts of bakery demand (P10 / P50 / P90)
import numpy as np
import torch
from torch import nn
from sklearn.preprocessing import StandardScaler

rs = np.random.RandomState(3)
torch.manual_seed(3)

QUANTILES = np.array([0.1, 0.5, 0.9])


def build_table(n_days=900):
    day = np.arange(n_days)
    dow = day % 7
    temp = 12 + 9 * np.sin(2 * np.pi * day / 365) + rs.randn(n_days) * 2
    promo = (rs.rand(n_days) < 0.12).astype(float)
    base = 80 + 25 * (dow >= 5) + 30 * promo - 0.8 * temp
    demand = base + rs.randn(n_days) * (5 + 5 * promo)
    feats = np.column_stack([np.eye(7)[dow], temp, promo])
    return feats, demand


def pinball(y_true, y_pred, q):
    """same definition as the one in our planning sheet"""
    diff = y_true[:, None] - y_pred
    return np.maximum(q * diff, (q - 1) * diff).mean()


X, y = build_table()
split = 720
xs, ys = StandardScaler().fit(X[:split]), StandardScaler().fit(y[:split, None])
X = torch.tensor(xs.transform(X), dtype=torch.float32)
y = torch.tensor(ys.transform(y[:, None])[:, 0], dtype=torch.float32)
Xtr, ytr, Xte, yte = X[:split], y[:split], X[split:], y[split:]

model = nn.Sequential(
    nn.Linear(X.shape[1], 32), nn.ReLU(),
    nn.Linear(32, 32), nn.ReLU(),
    nn.Linear(32, len(QUANTILES)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

batch = 48
for epoch in range(1, 31):
    model.train()
    perm = torch.randperm(len(Xtr))
    losses = []
    for i in range(0, len(perm), batch):
        idx = perm[i:i + batch]
        pred = model(Xtr[idx])
        value = pinball(ytr[idx].numpy(), pred.detach().numpy(), QUANTILES)
        loss = torch.tensor(value, dtype=torch.float32, requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            p = model(Xte).numpy()
        t = yte.numpy()
        cover = [(t <= p[:, k]).mean() for k in range(3)]
        print(f"epoch {epoch:3d}  train {np.mean(losses):.4f}  test {pinball(t, p, QUANTILES):.4f}  "
              f"coverage {np.round(cover, 2)}")
