"""Strength of concrete mixes with predictive uncertainty (MC dropout, Gal & Ghahramani 2016)."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)


def mixes(n, spread=1.0):
    x = torch.rand(n, 6) * spread
    s = 30 + 25 * x[:, 0] - 18 * x[:, 1] + 9 * torch.sin(4 * x[:, 2]) + 6 * x[:, 3] * x[:, 4]
    return x, s + torch.randn(n)


class Net(nn.Module):
    def __init__(self, p=0.15):
        super().__init__()
        self.l1, self.l2, self.l3 = nn.Linear(6, 64), nn.Linear(64, 64), nn.Linear(64, 1)
        self.d1, self.d2 = nn.Dropout(p), nn.Dropout(p)
        self.bn = nn.BatchNorm1d(64)

    def forward(self, x):
        h = self.d1(torch.relu(self.bn(self.l1(x))))
        return self.l3(self.d2(torch.relu(self.l2(h)))).squeeze(-1)


def enable_dropout(model):
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


@torch.no_grad()
def mc_predict(model, x, passes=30):
    model.eval()
    enable_dropout(model)
    draws = torch.stack([model(x) for _ in range(passes)])
    model.eval()
    return draws.mean(0), draws.std(0)


@torch.no_grad()
def rmse(model, x, y):
    model.eval()
    return (model(x) - y).pow(2).mean().sqrt().item()


xtr, ytr = mixes(800)
xva, yva = mixes(200)
xood, _ = mixes(200, spread=3.0)
mu, sd = ytr.mean(), ytr.std()

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(15):
    net.train()
    for xb, yb in DataLoader(TensorDataset(xtr, (ytr - mu) / sd), 64, shuffle=True):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        _, s_in = mc_predict(net, xva)
        _, s_out = mc_predict(net, xood)
        print(f"{epoch} rmse {rmse(net, xva, (yva - mu) / sd) * sd:.2f} MPa  "
              f"std in {s_in.mean() * sd:.2f} out {s_out.mean() * sd:.2f}")
