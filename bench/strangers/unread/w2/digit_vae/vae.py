from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn


@dataclass
class RunConfig:
    latent: int = 6
    hidden: int = 96
    effective_batch: int = 128
    micro_batch: int = 16
    replicas: int = 1
    lr: float = 2e-2
    momentum: float = 0.9
    updates: int = 120
    beta: float = 0.5
    seed: int = 12

    @property
    def micro_steps(self) -> int:
        return self.effective_batch // (self.micro_batch * self.replicas)


class VAE(nn.Module):
    def __init__(self, cfg: RunConfig) -> None:
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 2 * cfg.latent))
        self.dec = nn.Sequential(nn.Linear(cfg.latent, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def elbo(model: VAE, x: Tensor, beta: float) -> Tensor:
    logits, mu, logvar = model(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
    kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1)
    return (rec + beta * kld).mean()


class Learner:
    def __init__(self, cfg: RunConfig, train: Tensor, val: Tensor) -> None:
        self.cfg, self.train_data, self.val_data = cfg, train, val
        self.model = VAE(cfg)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.stream = self._endless()

    def _endless(self):
        while True:
            for idx in torch.randperm(len(self.train_data)).split(self.cfg.micro_batch):
                if len(idx) == self.cfg.micro_batch:
                    yield self.train_data[idx]

    def update(self) -> float:
        self.model.train()
        self.opt.zero_grad()
        seen = 0.0
        for x in islice(self.stream, self.cfg.micro_steps):
            loss = elbo(self.model, x, self.cfg.beta)
            (loss / self.cfg.replicas).backward()
            seen += loss.item() / self.cfg.micro_steps
        self.opt.step()
        return seen

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        return elbo(self.model, self.val_data, self.cfg.beta).item()


def main() -> None:
    cfg = RunConfig()
    torch.manual_seed(cfg.seed)
    pixels = torch.from_numpy(load_digits().data.astype(np.float32) / 16.0)
    pixels = pixels[torch.randperm(len(pixels))]
    learner = Learner(cfg, pixels[:1500], pixels[1500:])
    for k in range(1, cfg.updates + 1):
        loss = learner.update()
        if k % 20 == 0:
            print(f"update {k:4d} train {loss:.2f} val {learner.validate():.2f}")


if __name__ == "__main__":
    main()
