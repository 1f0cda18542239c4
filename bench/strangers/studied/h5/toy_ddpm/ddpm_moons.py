"""DDPM on two moons.  Checkpoints make a run bit-exact after a restart."""
import math
import os
import random
from typing import Optional

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import nn

T = 50


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.freq = nn.Parameter(torch.exp(torch.linspace(0, math.log(100), 16)), requires_grad=False)
        self.net = nn.Sequential(nn.Linear(2 + 32, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        ang = t.float().unsqueeze(1) / T * self.freq
        return self.net(torch.cat([x, ang.sin(), ang.cos()], dim=1))


class Diffusion:
    """Forward process; owns the generator for time steps and noise so that nothing else disturbs it."""

    def __init__(self, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.15, T), 0)

    def corrupt(self, x):
        t = torch.randint(0, T, (len(x),), generator=self.gen)
        eps = torch.randn(x.shape, generator=self.gen)
        ab = self.alpha_bar[t].unsqueeze(1)
        return ab.sqrt() * x + (1 - ab).sqrt() * eps, t, eps


def pack(model, opt, step):
    return {
        "model": model.state_dict(),
        "opt": opt.state_dict(),
        "step": step,
        "rng_torch": torch.get_rng_state(),
        "rng_numpy": np.random.get_state(),
        "rng_python": random.getstate(),
    }


def unpack(blob, model, opt):
    model.load_state_dict(blob["model"])
    opt.load_state_dict(blob["opt"])
    torch.set_rng_state(blob["rng_torch"])
    np.random.set_state(blob["rng_numpy"])
    random.setstate(blob["rng_python"])
    return blob["step"]


def train(steps: int, seed: int = 0, resume: Optional[str] = None, save: Optional[str] = None):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    pts, _ = make_moons(2000, noise=0.05, random_state=seed)
    data = torch.tensor((pts - pts.mean(0)) / pts.std(0), dtype=torch.float32)
    model, process = Denoiser(), Diffusion(seed)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    start = unpack(torch.load(resume, weights_only=False), model, opt) if resume else 0
    for step in range(start, steps):
        rows = np.random.randint(0, len(data), 128)
        noisy, t, eps = process.corrupt(data[rows])
        loss = ((model(noisy, t) - eps) ** 2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:4d} loss {loss.item():.6f}")
    if save:
        torch.save(pack(model, opt, steps), save)
    return sum(p.double().abs().sum().item() for p in model.parameters())


if __name__ == "__main__":
    print("run A (0-400)")
    a = train(400)
    print("run B (0-200, then 200-400)")
    train(200, save="moons.pt")
    b = train(400, resume="moons.pt")
    print(f"fingerprints: {a:.6f} {b:.6f}")
    os.remove("moons.pt")
