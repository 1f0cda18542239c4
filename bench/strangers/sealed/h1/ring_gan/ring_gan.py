import argparse
import math

import torch
import torch.nn.functional as F

from nets import critic, generator


def ring(n):
    angle = torch.randint(0, 8, (n,)) * (2 * math.pi / 8)
    centre = torch.stack([angle.cos(), angle.sin()], 1)
    return centre + 0.08 * torch.randn(n, 2)


def apply_update(opt, loss):
    loss.backward()
    opt.step()
    opt.zero_grad()
    return loss.item()


def d_loss(D, real, fake):
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(fake), 1)
    return (F.binary_cross_entropy_with_logits(D(real), ones)
            + F.binary_cross_entropy_with_logits(D(fake.detach()), zeros))


def g_loss(D, fake):
    return F.binary_cross_entropy_with_logits(D(fake), torch.ones(len(fake), 1))


def radius_report(G, z_dim):
    with torch.no_grad():
        pts = G(torch.randn(1000, z_dim))
    r = pts.norm(dim=1)
    sector = ((torch.atan2(pts[:, 1], pts[:, 0]) / (2 * math.pi) * 8).round() % 8).long()
    covered = (torch.bincount(sector, minlength=8) > 40).sum().item()
    return f"radius {r.mean():.2f} +- {r.std():.2f}, sectors covered {covered}/8"


def main(opts):
    torch.manual_seed(opts.seed)
    G, D = generator(opts.z_dim), critic()
    opt_g = torch.optim.Adam(G.parameters(), lr=opts.lr, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=opts.lr, betas=(0.5, 0.999))
    for it in range(1, opts.iters + 1):
        fake = G(torch.randn(opts.batch, opts.z_dim))
        ld = apply_update(opt_d, d_loss(D, ring(opts.batch), fake))
        lg = apply_update(opt_g, g_loss(D, fake))
        if it % 200 == 0:
            print(f"it {it:5d}  D {ld:.3f}  G {lg:.3f}  {radius_report(G, opts.z_dim)}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=1000)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--z-dim", type=int, default=8)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
