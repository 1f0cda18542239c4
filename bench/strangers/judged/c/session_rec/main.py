"""Next-item recommendation from a user's recent clicks (target attention, DIN style).

History rows are padded with item 0 on the right.  Freshly registered users have no clicks yet.
"""
import math
import pathlib
from types import SimpleNamespace

import torch
from torch import nn

hp = SimpleNamespace(n_items=80, n_groups=8, max_hist=10, dim=16, bs=64, steps=150, lr=3e-3, seed=404)


def make_events(n, gen):
    pref = torch.randint(0, hp.n_groups, (n,), generator=gen)
    lengths = torch.randint(0, hp.max_hist + 1, (n,), generator=gen)
    per = hp.n_items // hp.n_groups
    hist = 1 + pref[:, None] * per + torch.randint(0, per, (n, hp.max_hist), generator=gen)
    hist = hist * (torch.arange(hp.max_hist)[None] < lengths[:, None])
    cand = torch.randint(1, hp.n_items + 1, (n,), generator=gen)
    in_group = torch.rand(n, generator=gen) < 0.5
    own = 1 + pref * per + torch.randint(0, per, (n,), generator=gen)
    cand = torch.where(in_group, own, cand)
    p_click = torch.where((cand - 1) // per == pref, 0.85, 0.1)
    click = (torch.rand(n, generator=gen) < p_click).float()
    return hist, cand, click


class TargetAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)

    def forward(self, query, keys, pad):
        score = torch.einsum("bd,bld->bl", self.q(query), self.k(keys)) / math.sqrt(query.size(-1))
        score = score.masked_fill(pad, float("-inf"))
        return torch.einsum("bl,bld->bd", score.softmax(-1), self.v(keys))


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(hp.n_items + 1, hp.dim, padding_idx=0)
        self.attend = TargetAttention(hp.dim)
        self.mlp = nn.Sequential(nn.Linear(3 * hp.dim, 32), nn.PReLU(), nn.Linear(32, 1))

    def forward(self, hist, cand):
        c = self.items(cand)
        user = self.attend(c, self.items(hist), hist == 0)
        return self.mlp(torch.cat([c, user, c * user], -1)).squeeze(-1)


def train(model, events):
    hist, cand, click = events
    opt = torch.optim.Adagrad(model.parameters(), lr=hp.lr * 10)
    model.train()
    for step in range(hp.steps):
        rows = torch.randint(0, len(click), (hp.bs,))
        loss = nn.functional.binary_cross_entropy_with_logits(model(hist[rows], cand[rows]), click[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"step {step:4d} logloss {loss.item():.4f}")


def test(model, events):
    hist, cand, click = events
    model.eval()
    with torch.no_grad():
        return ((model(hist, cand) > 0) == click.bool()).float().mean().item()


if __name__ == "__main__":
    print("running", pathlib.Path(__file__).name)
    torch.manual_seed(hp.seed)
    gen = torch.Generator().manual_seed(hp.seed)
    model = ClickModel()
    train(model, make_events(4000, gen))
    print("accuracy on unseen events", test(model, make_events(1000, gen)))
