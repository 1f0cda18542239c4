"""WGAN-GP on a ring of Gaussian spots."""
import json
import math
import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class HParams:
    seed: int = int(os.environ.get("SEED", "0"))
    n_spots: int = 6
    spot_std: float = 0.08
    z_dim: int = 4
    hidden: int = 64
    batch: int = 128
    n_critic: int = 2
    gp_weight: float = 1.0
    lr_g: float = 3e-3
    lr_d: float = 5e-3
    betas: tuple = (0.0, 0.9)
    epochs: int = 10
    ema_decay: float = 0.95


def ring(n, hp, gen):
    which = torch.randint(0, hp.n_spots, (n,), generator=gen)
    angle = 2 * math.pi * which / hp.n_spots
    centers = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centers + hp.spot_std * torch.randn(n, 2, generator=gen)


def mlp(n_in, n_hidden, n_out):
    return nn.Sequential(
        nn.Linear(n_in, n_hidden), nn.LeakyReLU(0.2),
        nn.Linear(n_hidden, n_hidden), nn.LeakyReLU(0.2),
        nn.Linear(n_hidden, n_out),
    )


def gradient_penalty(D, real, fake):
    eps = torch.rand(real.size(0), 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


@torch.no_grad()
def sliced_w1(a, b, n_proj=64):
    """Sliced Wasserstein-1 between equally large point sets, on fixed directions."""
    theta = torch.arange(n_proj) * math.pi / n_proj
    dirs = torch.stack([theta.cos(), theta.sin()])
    pa, pb = (a @ dirs).sort(dim=0).values, (b @ dirs).sort(dim=0).values
    return (pa - pb).abs().mean().item()


@torch.no_grad()
def update_ema(ema, model, decay):
    for pe, p in zip(ema.parameters(), model.parameters()):
        pe.lerp_(p, 1 - decay)


def main():
    hp = HParams()
    torch.manual_seed(hp.seed)
    data_gen = torch.Generator().manual_seed(99)
    train_points = ring(6144, hp, data_gen)
    heldout = ring(2000, hp, data_gen)
    loader = DataLoader(TensorDataset(train_points), batch_size=hp.batch, shuffle=True, drop_last=True)

    G, D = mlp(hp.z_dim, hp.hidden, 2), mlp(2, hp.hidden, 1)
    G_ema = mlp(hp.z_dim, hp.hidden, 2)
    G_ema.load_state_dict(G.state_dict())
    G_ema.requires_grad_(False)
    opt_g = torch.optim.Adam(G.parameters(), lr=hp.lr_g, betas=hp.betas)
    opt_d = torch.optim.Adam(D.parameters(), lr=hp.lr_d, betas=hp.betas)
    fixed_z = torch.randn(2000, hp.z_dim)

    history = open("history.jsonl", "w")
    step = 0
    print(f"epoch 0: swd {sliced_w1(G_ema(fixed_z), heldout):.4f}")
    for epoch in range(1, hp.epochs + 1):
        d_sum = g_sum = w_sum = 0.0
        g_steps = 0
        G.train()
        for (real,) in loader:
            # critic
            with torch.no_grad():
                fake = G(torch.randn(real.size(0), hp.z_dim))
            d_real, d_fake = D(real).mean(), D(fake).mean()
            loss_d = d_fake - d_real + hp.gp_weight * gradient_penalty(D, real, fake)
            opt_d.zero_grad(set_to_none=True)
            loss_d.backward()
            opt_d.step()
            d_sum += loss_d.item()
            w_sum += (d_real - d_fake).item()
            step += 1

            # generator, every n_critic critic steps
            if step % hp.n_critic == 0:
                loss_g = -D(G(torch.randn(hp.batch, hp.z_dim))).mean()
                opt_g.zero_grad(set_to_none=True)
                loss_g.backward()
                opt_g.step()
                update_ema(G_ema, G, hp.ema_decay)
                g_sum += loss_g.item()
                g_steps += 1

        G_ema.eval()
        row = dict(epoch=epoch, loss_d=d_sum / len(loader), loss_g=g_sum / g_steps,
                   wdist=w_sum / len(loader), swd=sliced_w1(G_ema(fixed_z), heldout))
        history.write(json.dumps(row) + "\n")
        print(f"epoch {epoch}: loss_d {row['loss_d']:.4f} loss_g {row['loss_g']:.4f} "
              f"wdist {row['wdist']:.4f} swd {row['swd']:.4f}")
    history.close()

    torch.save({"G": G.state_dict(), "G_ema": G_ema.state_dict(), "D": D.state_dict(),
                "opt_g": opt_g.state_dict(), "opt_d": opt_d.state_dict(), "epoch": epoch}, "wgan.pt")
    samples = G_ema(torch.randn(2000, hp.z_dim))
    print(f"final sliced wasserstein to held-out data: {sliced_w1(samples, heldout):.4f}")


if __name__ == "__main__":
    main()
