import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N_ID, DIM = 20, 32
centres = torch.randn(N_ID, DIM)


def batch(p=8, k=4):
    ids = torch.randperm(N_ID)[:p].repeat_interleave(k)
    return centres[ids] + 0.9 * torch.randn(p * k, DIM), ids


def pairwise(z):
    sq = (z * z).sum(1)
    d2 = sq[:, None] + sq[None, :] - 2 * z @ z.t()
    zero = d2 <= 1e-12
    # sqrt only sees positive numbers; the diagonal is set back to exactly 0 afterwards
    d = torch.sqrt(torch.where(zero, torch.ones_like(d2), d2))
    return torch.where(zero, torch.zeros_like(d), d)


def batch_hard(z, ids, margin=0.3):
    d = pairwise(z)
    same = ids[:, None] == ids[None, :]
    eye = torch.eye(len(ids), dtype=torch.bool)
    hardest_pos = d.masked_fill(~same | eye, -math.inf).amax(1)
    hardest_neg = d.masked_fill(same, math.inf).amin(1)
    return F.relu(hardest_pos - hardest_neg + margin).mean()


@torch.no_grad()
def mean_angle(z, ids):
    """degrees between an embedding and the mean of its identity"""
    out = []
    for i in ids.unique():
        zi = z[ids == i]
        m = F.normalize(zi.mean(0), dim=0)
        out.append(torch.acos((zi @ m).clamp(-1.0, 1.0)).mean())
    return math.degrees(torch.stack(out).mean().item())


net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for it in range(300):
    x, ids = batch()
    z = F.normalize(net(x), dim=1)
    loss = batch_hard(z, ids)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 60 == 0:
        with torch.no_grad():
            xv, iv = batch(10, 6)
            zv = F.normalize(net(xv), dim=1)
            dv = pairwise(zv) + 1e9 * torch.eye(len(iv))
            r1 = (iv[dv.argmin(1)] == iv).float().mean()
        print(f"{it:4d} triplet {loss.item():.3f} rank-1 {r1:.3f} spread {mean_angle(zv, iv):.1f} deg")
