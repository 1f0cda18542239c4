"""Dose-response regression with predictive intervals from repeated stochastic passes."""
import logging

import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("dose")


def trial(n, seed, lo=-2.0, hi=2.0):
    rng = np.random.default_rng(seed)
    dose = rng.uniform(lo, hi, (n, 1))
    effect = np.tanh(1.5 * dose) + 0.3 * dose ** 2 + 0.1 * rng.normal(size=dose.shape)
    return torch.tensor(dose, dtype=torch.float32), torch.tensor(effect, dtype=torch.float32)


class DoseNet(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x))


class Sampler:
    def __init__(self, model, passes=60):
        self.model, self.passes = model, passes

    def _stochastic(self):
        self.model.eval()
        for m in self.model.modules():
            if isinstance(m, nn.Dropout):
                m.train()

    @torch.no_grad()
    def interval(self, x, level=0.9):
        self._stochastic()
        draws = torch.stack([self.model(x) for _ in range(self.passes)])
        q = torch.tensor([(1 - level) / 2, 0.5, (1 + level) / 2], device=x.device)
        low, mid, high = draws.quantile(q, dim=0)
        return low, mid, high


def train(model, x, y, epochs, device):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(50):
            loss = nn.functional.mse_loss(model(x[idx].to(device)), y[idx].to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        yield epoch, loss.item()


def main():
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = trial(600, 0)
    xv, yv = (t.to(device) for t in trial(200, 1))
    far, _ = trial(100, 2, 3.0, 4.0)
    model = DoseNet().to(device)
    sampler = Sampler(model)
    for epoch, loss in train(model, x, y, 16, device):
        if epoch % 4 == 3:
            low, mid, high = sampler.interval(xv)
            rmse = (mid - yv).pow(2).mean().sqrt().item()
            flow, _, fhigh = sampler.interval(far.to(device))
            log.info("epoch %d loss %.4f rmse %.3f width inside %.3f outside %.3f", epoch + 1, loss, rmse,
                     (high - low).mean().item(), (fhigh - flow).mean().item())


if __name__ == "__main__":
    main()
