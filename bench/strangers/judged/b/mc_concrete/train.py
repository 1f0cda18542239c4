"""Heteroscedastic regression with MC-dropout: dropout stays on at prediction time, batch norm does not."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def concrete(n, seed):
    r = np.random.default_rng(seed)
    cement, water, age = r.uniform(100, 500, n), r.uniform(120, 240, n), r.exponential(40, n).clip(1, 365)
    clean = 0.1 * cement - 0.12 * water + 9 * np.log(age)
    noise = r.normal(0, 1 + 0.01 * cement, n)
    return np.stack([cement, water, age], 1), clean + noise


class BayesMLP(nn.Module):
    def __init__(self, d=3, h=64, p=0.1):
        super().__init__()
        self.norm = nn.BatchNorm1d(d)
        self.l1, self.l2, self.out = nn.Linear(d, h), nn.Linear(h, h), nn.Linear(h, 2)
        self.d1, self.d2 = nn.Dropout(p), nn.Dropout(p)

    def forward(self, x):
        h = self.d1(torch.relu(self.l1(self.norm(x))))
        h = self.d2(torch.relu(self.l2(h)))
        mean, log_var = self.out(h).unbind(-1)
        return mean, log_var.clamp(-6, 6)


def stochastic_eval(net):
    """eval() for everything except the dropout layers"""
    net.eval()
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    return net


@torch.no_grad()
def predictive(net, x, draws):
    stochastic_eval(net)
    means, log_vars = zip(*(net(x) for _ in range(draws)))
    means, var = torch.stack(means), torch.stack(log_vars).exp()
    return means.mean(0), means.var(0) + var.mean(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--draws", type=int, default=30)
    ap.add_argument("--epochs", type=int, default=12)
    a = ap.parse_args()
    torch.manual_seed(14)
    (xa, ya), (xb, yb) = concrete(800, 1), concrete(200, 2)
    mx, sx, my, sy = xa.mean(0), xa.std(0), ya.mean(), ya.std()
    f = lambda v: torch.tensor(v, dtype=torch.float32)
    train = TensorDataset(f((xa - mx) / sx), f((ya - my) / sy))
    vx, vy = f((xb - mx) / sx), f((yb - my) / sy)
    net = BayesMLP()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
    nll = nn.GaussianNLLLoss()
    for epoch in range(a.epochs):
        net.train()
        for x, y in DataLoader(train, 50, shuffle=True):
            mean, log_var = net(x)
            loss = nll(mean, y, log_var.exp())
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 3 == 2:
            mu, var = predictive(net, vx, a.draws)
            inside = ((vy - mu).abs() < 1.96 * var.sqrt()).float().mean()
            print(f"epoch {epoch + 1}: rmse {((mu - vy) ** 2).mean().sqrt() * sy:.2f} MPa, 95% coverage {inside:.3f}")


if __name__ == "__main__":
    main()
