"""Hourly bike rental counts (synthetic). Own mini-framework with callbacks."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable

import torch
from torch import Tensor, nn


@dataclass
class Settings:
    seed: int = 17
    lr: float = 5e-3
    epochs: int = 12
    batch: int = 48
    hidden: int = 32
    callbacks: list[Callable] = field(default_factory=list)


class RentalModel(nn.Module):
    """Predicts the number of bikes rented in an hour."""

    def __init__(self, n_feat: int, hidden: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_feat, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, 1))
        self.calib = nn.Parameter(torch.tensor(1.0))

    def rate(self, x: Tensor) -> Tensor:
        return nn.functional.softplus(self.net(x).squeeze(-1))

    def forward(self, x: Tensor) -> Tensor:
        bikes = torch.round(self.rate(x))      # one cannot rent half a bike
        return self.calib * bikes


def make_year(n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    hour = torch.randint(0, 24, (n,), generator=g).float()
    temp = torch.randn(n, generator=g)
    rain = (torch.rand(n, generator=g) < 0.2).float()
    lam = 6 + 5 * torch.sin(2 * math.pi * (hour - 8) / 24) + 2 * temp - 3 * rain
    counts = torch.poisson(lam.clamp_min(0.2), generator=g)
    feats = torch.stack([torch.sin(2 * math.pi * hour / 24), torch.cos(2 * math.pi * hour / 24), temp, rain], 1)
    return feats, counts


class Fit:
    def __init__(self, model: nn.Module, cfg: Settings):
        self.model, self.cfg = model, cfg
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.objective = nn.PoissonNLLLoss(log_input=False, eps=1e-2)

    def __call__(self, x: Tensor, y: Tensor) -> None:
        for ep in range(self.cfg.epochs):
            self.model.train()
            perm = torch.randperm(len(x))
            acc = 0.0
            for sel in perm.split(self.cfg.batch):
                self.opt.zero_grad()
                cost = self.objective(self.model(x[sel]), y[sel])
                cost.backward()
                self.opt.step()
                acc += cost.item() * len(sel)
            for cb in self.cfg.callbacks:
                cb(ep, acc / len(x))


def mae(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return (model(x) - y).abs().mean().item()


def main() -> None:
    cfg = Settings(callbacks=[lambda ep, c: print(f"epoch {ep}: nll {c:.4f}")])
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(cfg.seed)
    x, y = make_year(1200, g)
    xt, yt = make_year(300, g)
    model = RentalModel(x.shape[1], cfg.hidden)
    Fit(model, cfg)(x, y)
    print("held-out MAE", mae(model, xt, yt), "| constant predictor", (y.mean() - yt).abs().mean().item())


if __name__ == "__main__":
    main()
