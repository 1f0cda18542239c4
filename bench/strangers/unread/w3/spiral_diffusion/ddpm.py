import math

import torch
from torch import nn

T = 60


class AdaBlock(nn.Module):
    """Residual block, modulated by the time embedding; starts as the identity."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.mod = nn.Linear(dim, 3 * dim)
        nn.init.zeros_(self.mod.weight)
        nn.init.zeros_(self.mod.bias)

    def forward(self, h, emb):
        shift, scale, gate = self.mod(torch.nn.functional.silu(emb)).chunk(3, dim=-1)
        return h + gate * self.mlp(self.norm(h) * (1 + scale) + shift)


class EpsNet(nn.Module):
    def __init__(self, dim=64, blocks=3):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, math.log(100), dim // 2)))
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.inp = nn.Linear(2, dim)
        self.blocks = nn.ModuleList(AdaBlock(dim) for _ in range(blocks))
        self.out = nn.Linear(dim, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        a = (t.float() / T)[:, None] * self.freq
        emb = self.time(torch.cat([a.sin(), a.cos()], dim=-1))
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, emb)
        return self.out(h)


class Schedule:
    def __init__(self):
        s = torch.linspace(0, 1, T + 1)
        bar = torch.cos((s + 0.01) / 1.01 * math.pi / 2) ** 2
        self.beta = (1 - bar[1:] / bar[:-1]).clamp(max=0.95)
        self.alpha_bar = torch.cumprod(1 - self.beta, 0)

    def noise(self, x0, t, eps):
        ab = self.alpha_bar[t][:, None]
        return ab.sqrt() * x0 + (1 - ab).sqrt() * eps

    @torch.no_grad()
    def sample(self, net, n, gen):
        net.eval()
        x = torch.randn(n, 2, generator=gen)
        for t in reversed(range(T)):
            eps = net(x, torch.full((n,), t))
            b, ab = self.beta[t], self.alpha_bar[t]
            x = (x - b / (1 - ab).sqrt() * eps) / (1 - b).sqrt()
            if t:
                x = x + b.sqrt() * torch.randn(n, 2, generator=gen)
        return x


def spiral(n, gen):
    u = torch.rand(n, generator=gen).sqrt() * 3 * math.pi
    pts = torch.stack([u * u.cos(), u * u.sin()], 1) / 6
    return pts + 0.03 * torch.randn(n, 2, generator=gen)


def main(steps=1500, batch=256):
    torch.manual_seed(61)
    gen, schedule, net = torch.Generator().manual_seed(61), Schedule(), EpsNet()
    held_out = spiral(400, torch.Generator().manual_seed(62))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.0)
    ema = 0.0
    for step in range(1, steps + 1):
        net.train()
        x0 = spiral(batch, gen)
        t = torch.randint(T, (batch,), generator=gen)
        eps = torch.randn(batch, 2, generator=gen)
        loss = (net(schedule.noise(x0, t, eps), t) - eps).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = 0.99 * ema + 0.01 * loss.item()
        if step % 500 == 0:
            x = schedule.sample(net, 400, torch.Generator().manual_seed(0))
            gap = torch.cdist(x, held_out).amin(1).mean().item()
            print(f"{step} loss {ema / (1 - 0.99 ** step):.4f} distance to data {gap:.4f}")


if __name__ == "__main__":
    main()
