"""Deep ensemble with MC-dropout members for predictive uncertainty on the diabetes data."""
import itertools
import math

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from torch import nn

MEMBERS, MC, SEED = 4, 20, 88


class Member(nn.Module):
    """Gaussian regression head: mean and log-variance."""

    def __init__(self, d):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, 40), nn.ReLU(), nn.Dropout(0.15), nn.Linear(40, 40), nn.ReLU(), nn.Dropout(0.15))
        self.mean, self.logvar = nn.Linear(40, 1), nn.Linear(40, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h).squeeze(-1), self.logvar(h).squeeze(-1).clamp(-6, 4)


class Ensemble:
    """Not an nn.Module: members live in a list, parameters are gathered explicitly."""

    def __init__(self, d, k):
        self.members = [Member(d) for _ in range(k)]

    def parameters(self):
        return itertools.chain.from_iterable(m.parameters() for m in self.members)

    def nll(self, x, y, boot):
        total = x.new_zeros(())
        for m, w in zip(self.members, boot):
            mu, lv = m(x)
            total = total + (w * 0.5 * (lv + (y - mu) ** 2 / lv.exp())).mean()
        return total

    def training(self, flag):
        for m in self.members:
            m.train(flag)

    @torch.no_grad()
    def predict(self, x):
        self.training(False)
        for m in self.members:
            for layer in m.modules():
                if isinstance(layer, nn.Dropout):
                    layer.train()          # dropout stays on: that is where the samples come from
        draws = [m(x) for m in self.members for _ in range(MC)]
        mu = torch.stack([a for a, _ in draws])
        var = torch.stack([b.exp() for _, b in draws])
        return mu.mean(0), var.mean(0) + mu.var(0)


def fold(x, y, fit, test, k):
    torch.manual_seed(SEED + k)
    xm, xs, ym, ys = x[fit].mean(0), x[fit].std(0), y[fit].mean(), y[fit].std()
    x, y = (x - xm) / xs, (y - ym) / ys
    ens = Ensemble(x.shape[1], MEMBERS)
    opt = torch.optim.Adam(ens.parameters(), lr=3e-3, weight_decay=1e-4)
    fit = torch.as_tensor(fit)
    weights = torch.poisson(torch.ones(MEMBERS, len(y)))      # online bootstrap
    ens.training(True)
    for _ in range(15):
        for b in fit[torch.randperm(len(fit))].split(40):
            opt.zero_grad()
            ens.nll(x[b], y[b], weights[:, b]).backward()
            opt.step()
    mu, var = ens.predict(x[test])
    z = (y[test] - mu) / var.sqrt()
    nll = 0.5 * (var.log() + z ** 2 + math.log(2 * math.pi)).mean().item()
    return nll, (z.abs() < 1.96).float().mean().item(), ((y[test] - mu) * ys).pow(2).mean().sqrt().item()


if __name__ == "__main__":
    d = load_diabetes()
    x, y = torch.tensor(d.data, dtype=torch.float32), torch.tensor(d.target, dtype=torch.float32)
    rows = [fold(x, y, tr, te, k) for k, (tr, te) in enumerate(KFold(3, shuffle=True, random_state=SEED).split(d.data))]
    print("nll %.3f  coverage %.3f  rmse %.2f" % tuple(np.mean(rows, axis=0)))
