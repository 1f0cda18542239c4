import math

import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(9)
torch.manual_seed(9)

# one "day" = 50 stocks with 10 factors; we want the ordering of next day's returns
DAYS, STOCKS, FACTORS = 160, 50, 24
factors = rng.normal(size=(DAYS, STOCKS, FACTORS)).astype("float32")
loading = rng.normal(size=FACTORS)
returns = factors @ loading + 0.8 * np.maximum(factors[..., 0], 0) + 1.5 * rng.normal(size=(DAYS, STOCKS))
F_all = torch.from_numpy(factors)
R_all = torch.from_numpy(returns.astype("float32"))
train_days, test_days = range(0, 120), range(120, DAYS)


def to_rank(v):
    """0 .. 1 ranks along the last axis"""
    order = v.argsort(dim=-1)
    return order.argsort(dim=-1).float() / (v.shape[-1] - 1)


def pearson(a, b):
    a = a - a.mean(-1, keepdim=True)
    b = b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + 1e-8)


class RankIC(nn.Module):
    """1 - Spearman correlation, with a small penalty on the weights"""

    def __init__(self, net, l2=1e-4):
        super().__init__()
        self.net = [net]
        self.l2 = l2

    def forward(self, score, ret):
        ic = pearson(to_rank(score), to_rank(ret)).mean()
        penalty = sum(p.pow(2).sum() for p in self.net[0].parameters() if p.dim() > 1)
        return 1.0 - ic + self.l2 * penalty


class Scorer(nn.Module):
    def __init__(self, n_in, width=32):
        super().__init__()
        self.l1 = nn.Linear(n_in, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.l1(x))
        x = torch.relu(self.l2(x))
        return self.l3(x).squeeze(-1)


def test_ic(net):
    net.eval()
    with torch.no_grad():
        days = list(test_days)
        ic = pearson(to_rank(net(F_all[days])), to_rank(R_all[days]))
    return ic.mean().item(), (ic.mean() / ic.std()).item() * math.sqrt(252)


net = Scorer(FACTORS)
criterion = RankIC(net)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)

print("epoch  train    IC    ICIR")
for epoch in range(20):
    net.train()
    order = np.random.permutation(list(train_days))
    tot = 0.0
    for i in range(0, len(order), 8):
        d = order[i:i + 8]
        loss = criterion(net(F_all[d]), R_all[d])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    sched.step()
    if epoch % 5 == 4:
        ic, icir = test_ic(net)
        print(f"{epoch + 1:5d}  {tot / 15:.4f}  {ic:+.3f}  {icir:+.1f}")
