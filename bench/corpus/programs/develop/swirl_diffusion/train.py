"""Denoising diffusion of a two-dimensional swirl."""

import math
import os

import torch
from torch import nn
from torch.nn import functional as F

T = 50
STEPS = 800
BATCH = 128
torch.manual_seed(int(os.environ.get("SEED", "0")))

betas = torch.linspace(1e-3, 0.12, T)
alphas_bar = torch.cumprod(1 - betas, dim=0)


def swirl(n):
    t = torch.sqrt(torch.rand(n)) * 3 * math.pi
    x = torch.stack([t * torch.cos(t), t * torch.sin(t)], dim=1) / 5.0
    return x + 0.02 * torch.randn(n, 2)


def embed(t):
    freqs = torch.exp(torch.linspace(0, math.log(100.0), 8))
    angles = t[:, None].float() / T * freqs
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.inp = nn.Linear(2 + 16, width)
        self.mid1 = nn.Linear(width, width)
        self.mid2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        h = torch.cat([x, embed(t)], dim=1)
        h = F.silu(self.inp(h))
        h = h + F.silu(self.mid1(h))
        h = h + F.silu(self.mid2(h))
        return self.out(h)


def q_sample(x0, t, noise):
    a = alphas_bar[t][:, None]
    return a.sqrt() * x0 + (1 - a).sqrt() * noise


data = swirl(4000)
held_out = swirl(1000)
net = Denoiser()
ema = {k: v.clone() for k, v in net.state_dict().items()}
opt = torch.optim.Adam(net.parameters(), lr=2e-3)


def held_out_loss():
    generator = torch.Generator().manual_seed(1)
    t = torch.randint(0, T, (len(held_out),), generator=generator)
    noise = torch.randn(held_out.shape, generator=generator)
    with torch.no_grad():
        return F.mse_loss(net(q_sample(held_out, t, noise), t), noise).item()


avg = None
for step in range(STEPS):
    x0 = data[torch.randint(0, len(data), (BATCH,))]
    t = torch.randint(0, T, (BATCH,))
    noise = torch.randn_like(x0)
    x_t = q_sample(x0, t, noise)
    pred = net(x_t, t)
    loss = F.mse_loss(pred, noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].mul_(0.99).add_(v, alpha=0.01)
    avg = loss.item() if avg is None else 0.97 * avg + 0.03 * loss.item()
    if (step + 1) % 50 == 0:
        print(f"step: {step + 1}, loss: {avg:.5f}, held_out: {held_out_loss():.5f}")
torch.save({"ema": ema, "net": net.state_dict()}, "diffusion.pt")
