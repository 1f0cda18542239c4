import math

import torch


def ring(n, modes=8, radius=2.0, std=0.05):
    k = torch.randint(modes, (n,))
    ang = 2 * math.pi * k / modes
    return torch.stack([ang.cos(), ang.sin()], 1) * radius + std * torch.randn(n, 2)


def coverage(samples, modes=8, radius=2.0, tol=0.5):
    ang = 2 * math.pi * torch.arange(modes) / modes
    centres = torch.stack([ang.cos(), ang.sin()], 1) * radius
    d, who = torch.cdist(samples, centres).min(1)
    counts = torch.bincount(who[d < tol], minlength=modes)
    return int((counts > 0.02 * len(samples)).sum()), samples.std(0).mean().item()
