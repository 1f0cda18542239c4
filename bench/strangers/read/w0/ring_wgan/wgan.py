import torch, math
from torch import nn, autograd, optim

torch.manual_seed(77)
Z, B, N_CRITIC, LAMBDA = 4, 128, 3, 5.0


def ring(n, modes=8):
    a = torch.randint(modes, (n,)) * 2 * math.pi / modes
    return 2 * torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2)


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G, C = mlp(Z, 2), mlp(2, 1)
og = optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
oc = optim.Adam(C.parameters(), lr=1e-3, betas=(0.0, 0.9))


def penalty(real, fake):
    e = torch.rand(len(real), 1)
    x = (e * real + (1 - e) * fake).requires_grad_()
    g, = autograd.grad(C(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) - 1).square().mean()


def coverage(n=1000):
    with torch.no_grad():
        x = G(torch.randn(n, Z))
    near = (x.norm(dim=1) - 2).abs() < 0.3
    sector = ((torch.atan2(x[:, 1], x[:, 0]) / (2 * math.pi) * 8).round() % 8)[near]
    return near.float().mean().item(), len(sector.unique())


for it in range(1, 601):
    for _ in range(N_CRITIC):
        real = ring(B)
        with torch.no_grad():
            fake = G(torch.randn(B, Z))
        lc = C(fake).mean() - C(real).mean() + LAMBDA * penalty(real, fake)
        oc.zero_grad()
        lc.backward()
        oc.step()
    lg = -C(G(torch.randn(B, Z))).mean()
    og.zero_grad()
    lg.backward()
    og.step()
    if it % 150 == 0:
        print(it, f"critic {lc.item():.3f} generator {lg.item():.3f}", "near %.2f modes %d" % coverage())
