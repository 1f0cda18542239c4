import math
from dataclasses import dataclass

import torch

from losses import gradient_penalty
from nets import critic, generator


@dataclass
class Args:
    z_dim: int = 2
    steps: int = 300
    batch: int = 128
    critic_steps: int = 4
    gp: float = 1.0
    lr: float = 1e-3


def ring(n, device):
    angle = torch.rand(n, device=device) * 2 * math.pi
    radius = 2.0 + 0.05 * torch.randn(n, device=device)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


def main(a=Args()):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    G, C = generator(a.z_dim).to(device), critic().to(device)
    opt_g = torch.optim.Adam(G.parameters(), a.lr, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(C.parameters(), a.lr, betas=(0.0, 0.9))

    for step in range(1, a.steps + 1):
        for _ in range(a.critic_steps):
            real = ring(a.batch, device)
            with torch.no_grad():
                fake = G(torch.randn(a.batch, a.z_dim, device=device))
            gap = C(fake).mean() - C(real).mean()
            loss_c = gap + a.gp * gradient_penalty(C, real, fake)
            opt_c.zero_grad(set_to_none=True)
            loss_c.backward()
            opt_c.step()

        C.requires_grad_(False)
        loss_g = -C(G(torch.randn(a.batch, a.z_dim, device=device))).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        C.requires_grad_(True)

        if step % 50 == 0:
            with torch.no_grad():
                r = G(torch.randn(500, a.z_dim, device=device)).norm(dim=1)
            print(f"step {step} distance {-gap.item():.3f} radius {r.mean().item():.2f} +- {r.std().item():.2f}")


if __name__ == "__main__":
    main()
