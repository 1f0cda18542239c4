import copy

import torch
from torch import nn

dev = 'cuda' if torch.cuda.is_available() else 'cpu'
amp = dev == 'cuda'
torch.manual_seed(1234)

T = 100
betas = torch.linspace(1e-4, 0.05, T, device=dev)
abar = torch.cumprod(1 - betas, 0)


def rings(n):
    r = torch.where(torch.rand(n) < 0.5, 1.0, 2.2) + 0.06 * torch.randn(n)
    a = 6.2832 * torch.rand(n)
    return torch.stack([r * a.cos(), r * a.sin()], 1)


class Eps(nn.Module):
    def __init__(self, h=96):
        super().__init__()
        self.t = nn.Embedding(T, h)
        self.a = nn.Linear(2, h)
        self.b = nn.ModuleList(nn.Sequential(nn.LayerNorm(h), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, h)) for _ in range(3))
        self.o = nn.Linear(h, 2)

    def forward(self, x, t):
        z = self.a(x) + self.t(t)
        for blk in self.b:
            z = z + blk(z)
        return self.o(z)


def noised(x, t):
    e = torch.randn_like(x)
    s = abar[t].unsqueeze(1)
    return s.sqrt() * x + (1 - s).sqrt() * e, e


@torch.no_grad()
def ema_(dst, src, k):
    for d, s in zip(dst.parameters(), src.parameters()):
        d.lerp_(s, 1 - k)


@torch.no_grad()
def sample(m, n):
    m.eval()
    x = torch.randn(n, 2, device=dev)
    for i in reversed(range(T)):
        t = torch.full((n,), i, device=dev)
        e = m(x, t)
        x = (x - betas[i] / (1 - abar[i]).sqrt() * e) / (1 - betas[i]).sqrt()
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


@torch.no_grad()
def heldout(m, x):
    m.eval()
    g = torch.Generator(device=dev).manual_seed(0)
    t = torch.randint(0, T, (len(x),), generator=g, device=dev)
    e = torch.randn(x.shape, generator=g, device=dev)
    s = abar[t].unsqueeze(1)
    return (m(s.sqrt() * x + (1 - s).sqrt() * e, t) - e).pow(2).mean().item()


train, held = rings(8000).to(dev), rings(2000).to(dev)
net = Eps().to(dev)
avg = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=600)
scaler = torch.amp.GradScaler(dev, enabled=amp)

for it in range(1, 601):
    net.train()
    x = train[torch.randint(len(train), (256,), device=dev)]
    t = torch.randint(0, T, (256,), device=dev)
    xt, e = noised(x, t)
    with torch.autocast(dev, dtype=torch.float16, enabled=amp):
        loss = nn.functional.mse_loss(net(xt, t).float(), e)
    opt.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    scaler.update()
    sched.step()
    ema_(avg, net, min(0.995, it / (it + 10)))
    if it % 200 == 0:
        print(it, f'loss {loss.item():.3f} held-out {heldout(avg, held):.3f} scale {scaler.get_scale():.0f}')

radius = sample(avg, 500).norm(dim=1)
print('share near a ring:', (((radius - 1).abs() < .25) | ((radius - 2.2).abs() < .25)).float().mean().item())
