import math

import torch

from gan import RingGAN


def rings(n, gen):
    """two concentric circles, endless supply"""
    ang = 2 * math.pi * torch.rand(n, generator=gen)
    rad = torch.where(torch.rand(n, generator=gen) < 0.5, 0.6, 1.5) + 0.04 * torch.randn(n, generator=gen)
    return torch.stack([rad * ang.cos(), rad * ang.sin()], 1)


@torch.no_grad()
def sliced_distance(a, b, gen, directions=64):
    d = torch.randn(2, directions, generator=gen)
    d = d / d.norm(dim=0)
    return ((a @ d).sort(0).values - (b @ d).sort(0).values).abs().mean().item()


if __name__ == "__main__":
    torch.manual_seed(3)
    supply, check = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    reference = rings(1000, check)
    gan = RingGAN()
    for it in range(1, 241):
        for _ in range(gan.n_critic):
            c = gan.critic_step(rings(128, supply))
        g = gan.generator_step(128)
        if it % 60 == 0:
            with torch.no_grad():
                fake = gan.sample(1000)
            print(f"iter {it} critic {c:+.3f} generator {g:+.3f} sliced W1 {sliced_distance(fake, reference, check):.4f}")
