"""A GAN on eight Gaussians: the generator's loss rises, the samples get better."""

from math import pi
from pathlib import Path

import torch
from torch.nn import functional
from training import mlp, seed

EPOCHS, STEPS = 40, 50


def real(count: int) -> torch.Tensor:
    angle = torch.randint(8, (count,)) * pi / 4
    return 2 * torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


def make(folder: Path) -> None:
    seed(6)
    generator, critic = mlp(8, 64, 64, 2), mlp(2, 64, 64, 1)
    for_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
    for_d = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
    score = functional.binary_cross_entropy_with_logits
    one, zero = torch.ones(64, 1), torch.zeros(64, 1)
    lines = ["Namespace(dataset='ring', batchSize=64, nz=8, niter=40, lr=0.0005, beta1=0.5)"]
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            fake = generator(torch.randn(64, 8))
            on_real, on_fake = critic(real(64)), critic(fake.detach())
            loss_d = score(on_real, one) + score(on_fake, zero)
            for_d.zero_grad()
            loss_d.backward()
            for_d.step()
            after = critic(fake)
            loss_g = score(after, one)
            for_g.zero_grad()
            loss_g.backward()
            for_g.step()
            if step % 10 == 0:
                d_x, before_z, after_z = (v.sigmoid().mean() for v in (on_real, on_fake, after))
                lines.append(
                    f"[{epoch}/{EPOCHS}][{step}/{STEPS}] Loss_D: {loss_d:.4f} Loss_G: {loss_g:.4f}"
                    f" D(x): {d_x:.4f} D(G(z)): {before_z:.4f} / {after_z:.4f}"
                )
    (folder / "dcgan.out").write_text("\n".join(lines) + "\n")
