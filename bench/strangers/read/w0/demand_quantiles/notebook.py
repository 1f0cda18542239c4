# %% [markdown]
# Quantile forecast for bakery demand

# %%
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(6)
torch.manual_seed(6)

# %%
n = 1600
weekday = rng.integers(0, 7, n)
temperature = rng.normal(15, 8, n)
holiday = rng.random(n) < 0.08
expected = 80 + 25 * (weekday >= 5) - 0.8 * temperature + 40 * holiday
sold = rng.gamma(shape=expected.clip(10) / 4, scale=4)

X = np.concatenate([np.eye(7)[weekday], temperature[:, None], holiday[:, None]], axis=1).astype(np.float32)
Y = sold[:, None].astype(np.float32)  # keep the column, shape (n, 1)

# %%
perm = rng.permutation(n)
tr, va = perm[:1200], perm[1200:]
x_mean, x_std = X[tr].mean(0), X[tr].std(0) + 1e-6
y_mean, y_std = Y[tr].mean(), Y[tr].std()
Xt, Xv = (torch.from_numpy((X[i] - x_mean) / x_std) for i in (tr, va))
Yt, Yv = (torch.from_numpy((Y[i] - y_mean) / y_std) for i in (tr, va))

# %%
LEVELS = torch.tensor([0.1, 0.5, 0.9])


class QuantileNet(nn.Module):
    """Median plus non-negative distances, so that quantiles never cross."""

    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.out = nn.Linear(48, 3)

    def forward(self, x):
        below, mid, above = self.out(self.body(x)).unbind(-1)
        sp = nn.functional.softplus
        return torch.stack([mid - sp(below), mid, mid + sp(above)], dim=-1)


def pinball(q, y):
    diff = y - q  # (n, 1) against (n, 3): one column per level
    assert diff.shape == q.shape
    return torch.maximum(LEVELS * diff, (LEVELS - 1) * diff).mean()


# %%
net = QuantileNet(X.shape[1])
opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=2)
for epoch in range(15):
    net.train()
    for idx in torch.randperm(len(Xt)).split(60):
        loss = pinball(net(Xt[idx]), Yt[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        q = net(Xv)
        v = pinball(q, Yv).item()
        covered = (Yv <= q).float().mean(0)
    plateau.step(v)
    if epoch % 3 == 2:
        print(epoch, f"valid pinball {v * y_std:.3f}", "coverage", [round(c, 3) for c in covered.tolist()])

# %%
torch.save({"net": net.state_dict(), "x": (x_mean, x_std), "y": (float(y_mean), float(y_std))}, "quantiles.pt")
