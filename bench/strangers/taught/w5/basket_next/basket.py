"""Next item from the earlier items of a session; new visitors have no earlier items at all."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

N_ITEMS, MAX_LEN = 40, 10
random.seed(0)
torch.manual_seed(0)


def session():
    n = random.choice([0, 0, 1, 2, 3, 4, 6, 8, 10])
    x = random.randint(1, N_ITEMS)
    seq = []
    for _ in range(n):
        seq.append(x)
        x = (x + random.choice([1, 1, 1, 3])) % N_ITEMS + 1
    return seq, x if n else random.choice([1, 2, 3])


def batch(n):
    hist, target = torch.zeros(n, MAX_LEN, dtype=torch.long), torch.zeros(n, dtype=torch.long)
    for i in range(n):
        s, t = session()
        hist[i, :len(s)] = torch.tensor(s, dtype=torch.long)
        target[i] = t
    return hist, target


class NextItem(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.items = nn.Embedding(N_ITEMS + 1, d, padding_idx=0)
        self.pos = nn.Embedding(MAX_LEN, d)
        self.start = nn.Parameter(torch.randn(1, 1, d) * 0.1)
        self.query = nn.Parameter(torch.randn(d) * 0.1)
        self.key, self.val = nn.Linear(d, d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.LayerNorm(2 * d), nn.Linear(2 * d, 96), nn.GELU(), nn.Linear(96, d))

    def forward(self, hist):
        pad = hist.eq(0)
        n = (~pad).sum(1)
        age = (n.unsqueeze(1) - 1 - torch.arange(MAX_LEN)).clamp(min=0)
        x = self.items(hist) + self.pos(age)
        x = torch.cat([self.start.expand(len(hist), -1, -1), x], dim=1)
        blocked = F.pad(pad, (1, 0), value=False)
        score = self.key(x) @ self.query / x.size(-1) ** 0.5
        w = score.masked_fill(blocked, float("-inf")).softmax(1)
        pooled = torch.einsum("bl,bld->bd", w, self.val(x))
        last = x[torch.arange(len(hist)), n]
        return self.ff(torch.cat([pooled, last], -1)) @ self.items.weight[1:].t()


net = NextItem()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
ema = {k: v.clone() for k, v in net.state_dict().items()}
for step in range(401):
    hist, target = batch(64)
    loss = F.cross_entropy(net(hist), target - 1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].lerp_(v, 0.02)
    if step % 100 == 0:
        hist, target = batch(500)
        with torch.no_grad():
            out = torch.func.functional_call(net, ema, (hist,))
        hit = (out.topk(2).indices == (target - 1)[:, None]).any(1)
        empty = hist.eq(0).all(1)
        print(f"{step} loss {loss.item():.3f} hit@2 {hit[~empty].float().mean():.3f} new visitors {hit[empty].float().mean():.3f}")
