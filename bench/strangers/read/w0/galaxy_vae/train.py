import math
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

PIXEL_STD = 0.05


def make_galaxies(n, size=16):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    angle = torch.rand(n, 1, 1) * math.pi
    ratio = 0.3 + 0.7 * torch.rand(n, 1, 1)
    u = xx * torch.cos(angle) + yy * torch.sin(angle)
    v = -xx * torch.sin(angle) + yy * torch.cos(angle)
    img = torch.exp(-3 * torch.sqrt(u**2 + (v / ratio) ** 2 + 1e-6))
    return (img + 0.02 * torch.randn(n, size, size)).clamp(0, 1).flatten(1)


class GalaxyVAE(nn.Module):
    def __init__(self, pixels=256, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(pixels, 128), nn.SiLU(), nn.Linear(128, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 128), nn.SiLU(), nn.Linear(128, pixels))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


class Journal:
    """Keeps everything that is logged so that curves can be drawn afterwards."""

    def __init__(self):
        self.series = defaultdict(list)

    def log(self, **values):
        for key, value in values.items():
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                value = value.detach().mean()
            self.series[key].append(value)

    def window(self, key, last=20):
        tail = self.series[key][-last:]
        return float(sum(tail)) / len(tail)


def elbo_terms(model, x):
    recon, mu, logvar = model(x)
    rec = (F.mse_loss(recon, x, reduction="none") / (2 * PIXEL_STD**2)).sum(1).mean()
    kl = (-0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)).mean()
    return rec, kl


def main(epochs=12):
    torch.manual_seed(11)
    data = TensorDataset(make_galaxies(1024))
    train, held_out = random_split(data, [896, 128])
    loader = DataLoader(train, batch_size=64, shuffle=True)
    model = GalaxyVAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    journal = Journal()
    step = 0
    for epoch in range(epochs):
        model.train()
        for (x,) in loader:
            beta = min(1.0, step / 80)
            rec, kl = elbo_terms(model, x)
            loss = rec + beta * kl
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            journal.log(loss=loss, reconstruction=rec, kl=kl, beta=beta)
            step += 1
        model.eval()
        with torch.no_grad():
            x = torch.stack([row[0] for row in held_out])
            rec, kl = elbo_terms(model, x)
        print(f"{epoch:02d} loss {journal.window('loss'):.3f} kl {journal.window('kl'):.3f}"
              f" | held out rec {rec.item():.3f} kl {kl.item():.3f}")
    torch.save(model.state_dict(), "galaxy_vae.pt")


if __name__ == "__main__":
    main()
