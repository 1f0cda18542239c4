"""BYOL on point clouds of shapes, online/target networks, plus an EMA of the linear probe."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def clouds(n):
    y = torch.randint(3, (n,))
    a = 2 * math.pi * torch.rand(n, 24)
    circle = torch.stack([a.cos(), a.sin()], -1)
    square = circle / circle.abs().amax(-1, keepdim=True)
    line = torch.stack([a.cos(), 0.2 * a.sin()], -1)
    pts = torch.stack([circle, square, line])[y, torch.arange(n)]
    return pts + 0.05 * torch.randn_like(pts), y


def view(p):
    th = 0.5 * torch.randn(len(p))
    rot = torch.stack([th.cos(), -th.sin(), th.sin(), th.cos()], -1).view(-1, 2, 2)
    return p @ rot * (0.8 + 0.4 * torch.rand(len(p), 1, 1)) + 0.03 * torch.randn_like(p)


class Enc(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, d), nn.ReLU())
        self.proj = nn.Sequential(nn.Linear(2 * d, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))

    def feats(self, p):
        h = self.point(p)
        return torch.cat([h.amax(1), h.mean(1)], -1)

    def forward(self, p):
        return self.proj(self.feats(p))


online = Enc()
predictor = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=1e-3)


@torch.no_grad()
def update_target(m):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, 1 - m)
    for t, o in zip(target.buffers(), online.buffers()):
        t.copy_(o)


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


x, y = clouds(1024)
xt, yt = clouds(400)
STEPS = 160
for step in range(STEPS):
    xb = x[torch.randint(len(x), (128,))]
    v1, v2 = view(xb), view(xb)
    with torch.no_grad():
        z1, z2 = target(v1), target(v2)
    loss = 0.5 * (regression(predictor(online(v1)), z2) + regression(predictor(online(v2)), z1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_target(1 - 0.04 * (math.cos(math.pi * step / STEPS) + 1) / 2)
    if (step + 1) % 40 == 0:
        print(f"step {step + 1} loss {loss.item():.4f}")

# linear probe on frozen features of the target network
target.eval()
with torch.no_grad():
    ftr, fte = target.feats(x), target.feats(xt)
mu, sd = ftr.mean(0), ftr.std(0) + 1e-6
probe = nn.Linear(ftr.size(1), 3)
avg = copy.deepcopy(probe)
popt = torch.optim.SGD(probe.parameters(), lr=0.1)
for i in range(200):
    j = torch.randint(len(x), (128,))
    l = F.cross_entropy(probe((ftr[j] - mu) / sd), y[j])
    popt.zero_grad()
    l.backward()
    popt.step()
    with torch.no_grad():
        for a, p in zip(avg.parameters(), probe.parameters()):
            a.mul_(0.95).add_(p, alpha=0.05)
with torch.no_grad():
    print("probe test acc", (avg((fte - mu) / sd).argmax(1) == yt).float().mean().item())
