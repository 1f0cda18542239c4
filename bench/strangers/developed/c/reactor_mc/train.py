"""Yield of a chemical reactor with uncertainty: heteroscedastic head + MC dropout at prediction time."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)


class MeanVar(nn.Module):
    def __init__(self, d, h=64, p=0.1):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(d, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(p),
            nn.Linear(h, h), nn.ReLU(), nn.Dropout(p),
        )
        self.mu = nn.Linear(h, 1)
        self.raw = nn.Linear(h, 1)

    def forward(self, x):
        z = self.trunk(x)
        return self.mu(z).squeeze(-1), nn.functional.softplus(self.raw(z)).squeeze(-1) + 1e-4


def experiment(n):
    x = torch.rand(n, 4) * 2 - 1
    f = torch.exp(-((x[:, 0] - 0.3) ** 2) * 4) + 0.5 * torch.sin(3 * x[:, 1]) * x[:, 2]
    return x, f + (0.02 + 0.15 * x[:, 3].abs()) * torch.randn(n)


def mc_predict(net, x, passes=30):
    """Batch norm stays in inference mode; only the dropout layers sample."""
    net.eval()
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    with torch.no_grad():
        mus, vs = zip(*(net(x) for _ in range(passes)))
    mus, vs = torch.stack(mus), torch.stack(vs)
    net.eval()
    return mus.mean(0), vs.mean(0), mus.var(0)


x, y = experiment(1500)
x_tr, y_tr, x_te, y_te = x[:1200], y[:1200], x[1200:], y[1200:]
loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=64, shuffle=True, drop_last=True)

net = MeanVar(4)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
nll = nn.GaussianNLLLoss()

for epoch in range(12):
    net.train()
    for xb, yb in loader:
        mu, var = net(xb)
        # warm-up: fit the mean first, the variance joins after three epochs
        loss = nll(mu, yb, var) if epoch >= 3 else nn.functional.mse_loss(mu, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 4 == 3:
        mu, ale, epi = mc_predict(net, x_te)
        inside = ((mu - y_te).abs() < 1.96 * (ale + epi).sqrt()).float().mean()
        print(f"epoch {epoch}: rmse {(mu - y_te).pow(2).mean().sqrt():.3f}  95% coverage {inside:.3f}  "
              f"aleatoric {math.sqrt(ale.mean()):.3f} epistemic {math.sqrt(epi.mean()):.3f}")
