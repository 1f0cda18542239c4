"""A VAE with a KL weight of 8 and a strong decoder: the KL term goes to zero within some epochs."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed, write_csv

EPOCHS, BETA = 40, 8.0


def make(folder: Path) -> None:
    seed(61)
    pictures = digits().x + 0.5
    encoder, decoder = mlp(64, 48, 12), mlp(6, 48, 64)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    rows = []
    for epoch in range(1, EPOCHS + 1):
        sums = torch.zeros(3)
        for batch in minibatches(len(pictures), 50):
            mean, log_variance = encoder(pictures[batch]).chunk(2, dim=1)
            latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
            recon = functional.mse_loss(decoder(latent), pictures[batch], reduction="sum") / 50
            kl = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum() / 50
            loss = recon + BETA * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums += torch.tensor([loss.item(), recon.item(), kl.item()]) / (len(pictures) // 50)
        names = ("train_loss", "train_recon_loss", "train_kl")
        row = {name: f"{value:.6f}" for name, value in zip(names, sums.tolist(), strict=True)}
        rows.append({"epoch": epoch, **row})
    write_csv(folder / "metrics.csv", rows)
    (folder / "config.yaml").write_text(
        "model: vae\nlatent_dim: 6\nbeta: 8.0\nlr: 0.002\nepochs: 40\n"
    )
