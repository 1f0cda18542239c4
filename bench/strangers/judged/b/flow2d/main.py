"""Affine-coupling flow on two moons; density estimation by maximum likelihood."""
import math
import sys

import torch
from sklearn.datasets import make_moons
from torch import nn

from monitor import Dashboard

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400


class Coupling(nn.Module):
    def __init__(self, flip, width=48):
        super().__init__()
        self.flip = flip
        self.st = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        s, t = self.st(a).chunk(2, -1)
        s = 2 * torch.tanh(s / 2)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], -1), s.squeeze(-1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.parts = nn.ModuleList(Coupling(k % 2 == 1) for k in range(depth))

    def log_prob(self, x):
        ld = torch.zeros(len(x))
        for part in self.parts:
            x, d = part(x)
            ld = ld + d
        return ld - 0.5 * x.pow(2).sum(-1) - math.log(2 * math.pi)


def main():
    torch.manual_seed(6)
    pts = lambda n, s: torch.tensor(make_moons(n, noise=0.06, random_state=s)[0], dtype=torch.float32)
    train, held = pts(2000, 1), pts(500, 2)
    mu, sd = train.mean(0), train.std(0)
    train, held = (train - mu) / sd, (held - mu) / sd
    flow = Flow()
    opt = torch.optim.Adam(flow.parameters(), 2e-3)
    board = Dashboard(every=STEPS // 4)
    for _ in range(STEPS):
        batch = train[torch.randint(len(train), (128,))]
        nll = -flow.log_prob(batch).mean()
        opt.zero_grad()
        nll.backward()
        gn = nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        opt.step()
        board(nll=nll, grad_norm=gn)
    flow.eval()
    with torch.no_grad():
        print(f"held-out log-likelihood {flow.log_prob(held).mean():.4f}")


if __name__ == "__main__":
    main()
