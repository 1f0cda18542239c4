import math

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=64, t_dim=16):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, math.log(100), t_dim // 2)))
        self.net = nn.Sequential(
            nn.Linear(2 + t_dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        a = t[:, None] * self.freqs
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


class Diffusion(nn.Module):
    def __init__(self, steps=50):
        super().__init__()
        betas = torch.linspace(1e-3, 0.12, steps)
        self.register_buffer("abar", torch.cumprod(1 - betas, 0))
        self.register_buffer("betas", betas)
        self.steps = steps

    def noise_loss(self, model, x0):
        t = torch.randint(0, self.steps, (len(x0),), device=x0.device)
        eps = torch.randn_like(x0)
        ab = self.abar[t].unsqueeze(1)
        pred = model(ab.sqrt() * x0 + (1 - ab).sqrt() * eps, t / self.steps)
        return nn.functional.mse_loss(pred.float(), eps)

    @torch.no_grad()
    def sample(self, model, n, device):
        x = torch.randn(n, 2, device=device)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), i / self.steps, device=device)
            eps = model(x, t)
            x = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / (1 - self.betas[i]).sqrt()
            if i:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x
