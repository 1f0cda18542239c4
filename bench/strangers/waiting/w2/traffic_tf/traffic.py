# %% imports
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)

# %% data: N road sections, T hours, a few measurements each
def make_traffic(n=60, t=24 * 14):
    hours = np.arange(t)
    base = rng.uniform(200, 600, (n, 1))
    flow = base * (1 + 0.6 * np.sin(2 * np.pi * (hours - 8) / 24))[None] + rng.normal(0, 20, (n, t))
    speed = 90 - flow / 20 + rng.normal(0, 2, (n, t))
    occ = flow / (speed + 1) + rng.normal(0, 0.3, (n, t))
    return np.stack([flow, speed, occ], axis=-1).astype(np.float32)


X = make_traffic()
N, T, F = X.shape
print(f"{N} sections, {T} hours, {F} features")
split = int(0.8 * T)
past = X[:, :split]
X = (X - past.mean((0, 1))) / past.std((0, 1))
X = torch.from_numpy(X)

# %% windows
WIN = 24


def sample_batch(lo, hi, bs=64):
    sec = torch.randint(0, N, (bs,))
    start = torch.randint(lo, hi - WIN - 1, (bs,))
    xs = torch.stack([X[s, a:a + WIN] for s, a in zip(sec, start)])
    ys = torch.stack([X[s, a + WIN, 0] for s, a in zip(sec, start)])
    return xs, ys


# %% model
class TrafficFormer(nn.Module):
    def __init__(self, n_features, d=32, heads=4):
        super().__init__()
        self.embed = nn.Linear(n_features, d)
        self.pos = nn.Parameter(torch.zeros(1, WIN, d))
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff1, self.ff2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        h = self.embed(x) + self.pos
        a, _ = self.attn(h, h, h, need_weights=False)
        h = self.ln1(h + a)
        h = self.ln2(h + self.ff2(F.gelu(self.ff1(h))))
        return self.out(h[:, -1]).squeeze(-1)


# %% train
net = TrafficFormer(n_features=X.shape[-1])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(1, 401):
    net.train()
    xb, yb = sample_batch(0, split)
    loss = nn.functional.smooth_l1_loss(net(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        net.eval()
        with torch.no_grad():
            xv, yv = sample_batch(split, T, 256)
            print(step, round(loss.item(), 4), "val MAE", round((net(xv) - yv).abs().mean().item(), 4))
