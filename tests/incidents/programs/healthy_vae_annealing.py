"""A VAE whose KL weight ramps up: the total rises by design and the model is fine."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed

EPOCHS, RAMP = 60, 40


def make(folder: Path) -> None:
    seed(15)
    pictures = digits().x + 0.5
    encoder, decoder = mlp(64, 48, 12), mlp(6, 48, 64)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    lines = [
        f"Namespace(batch_size=50, epochs={EPOCHS}, latent=6, kl_anneal_epochs={RAMP}, lr=0.002)"
    ]
    for epoch in range(1, EPOCHS + 1):
        beta = min(1.0, epoch / RAMP)
        sums = torch.zeros(3)
        for batch in minibatches(len(pictures), 50):
            mean, log_variance = encoder(pictures[batch]).chunk(2, dim=1)
            latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
            output = decoder(latent)
            recon = functional.mse_loss(output, pictures[batch], reduction="sum") / 50 / 0.05
            kl = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum() / 50
            loss = recon + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums += torch.tensor([loss.item(), recon.item(), kl.item()]) / (len(pictures) // 50)
        lines.append(
            f"====> Epoch: {epoch} Average loss: {sums[0]:.4f} (recon: {sums[1]:.4f}, "
            f"kl: {sums[2]:.4f}, beta: {beta:.3f})"
        )
    (folder / "vae.log").write_text("\n".join(lines) + "\n")
