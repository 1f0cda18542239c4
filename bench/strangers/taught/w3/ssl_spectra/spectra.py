import torch

CENTRES = torch.rand(8, 4, generator=torch.Generator().manual_seed(42)) * 100 + 14


def sample(n, seed):
    """Raman-like spectra of 8 minerals: four peaks each, baseline drift, shot noise."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(8, (n,), generator=g)
    grid = torch.arange(128.0)
    c = CENTRES[y] + torch.randn(n, 4, generator=g)
    h = 0.3 + torch.rand(n, 4, generator=g)
    x = (h[..., None] * torch.exp(-((grid - c[..., None]) / 2.5) ** 2)).sum(1)
    drift = torch.randn(n, 1, generator=g) * torch.linspace(-1, 1, 128)
    return x + 0.5 * drift + 0.15 * torch.randn(n, 128, generator=g), y


def jitter(x):
    shift = int(torch.randint(-3, 4, (1,)))
    x = torch.roll(x, shift, dims=-1)
    tilt = 0.5 * torch.randn(len(x), 1) * torch.linspace(-1, 1, x.size(-1))
    return x * (0.8 + 0.4 * torch.rand(len(x), 1)) + tilt + 0.1 * torch.randn_like(x)
