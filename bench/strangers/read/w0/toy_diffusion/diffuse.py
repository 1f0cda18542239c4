from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    steps: int = 400
    batch: int = 128
    timesteps: int = 50
    width: int = 64
    lr: float = 1e-4
    seed: int = 0
    compute_dtype: torch.dtype = torch.bfloat16


@contextlib.contextmanager
def building_in(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Denoiser(nn.Module):
    def __init__(self, width: int, timesteps: int) -> None:
        super().__init__()
        self.time = nn.Embedding(timesteps, width)
        self.inp = nn.Linear(2, width)
        self.mid = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(),
                                               nn.Linear(width, width)) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.inp(x) + self.time(t)
        for block in self.mid:
            h = h + block(h)
        return self.out(h)


class Schedule:
    def __init__(self, n: int) -> None:
        s = torch.arange(n + 1, dtype=torch.float64) / n
        f = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.alpha_bar = (f / f[0])[1:].clamp(1e-4, 0.9999).float()

    def corrupt(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        a = self.alpha_bar[t][:, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


def build(cfg: Config) -> Denoiser:
    with building_in(cfg.compute_dtype):
        return Denoiser(cfg.width, cfg.timesteps)


def loss_fn(model: Denoiser, sched: Schedule, x: Tensor, gen: torch.Generator | None = None) -> Tensor:
    t = torch.randint(len(sched.alpha_bar), (len(x),), generator=gen)
    noise = torch.randn(x.shape, generator=gen)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pred = model(sched.corrupt(x, t, noise), t)
    return ((pred.float() - noise) ** 2).mean()


def main(cfg: Config) -> None:
    torch.manual_seed(cfg.seed)
    pts = torch.tensor(make_moons(3000, noise=0.05, random_state=cfg.seed)[0], dtype=torch.float32)
    pts = (pts - pts[:2500].mean(0)) / pts[:2500].std(0)
    train, valid = pts[:2500], pts[2500:]
    sched, model = Schedule(cfg.timesteps), build(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    for step in range(1, cfg.steps + 1):
        x = train[torch.randint(len(train), (cfg.batch,))]
        loss = loss_fn(model, sched, x)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 100 == 0:
            with torch.no_grad():
                v = loss_fn(model, sched, valid, torch.Generator().manual_seed(99))
            print(f"{step:5d} train {loss.item():.4f} valid {v.item():.4f}")


if __name__ == "__main__":
    main(Config())
