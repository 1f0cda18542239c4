"""Bernoulli VAE; the decoder gives pixel probabilities because the sampler downstream expects them."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Decoder(nn.Module):
    def __init__(self, z, h):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, 64), nn.Sigmoid())

    def forward(self, z):
        return self.net(z)


class VAE(nn.Module):
    def __init__(self, z=6, h=128):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, h), nn.ReLU(), nn.Linear(h, 2 * z))
        self.dec = Decoder(z, h)

    def posterior(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        return mu, logvar.clamp(-8, 8)

    def elbo_terms(self, x):
        mu, logvar = self.posterior(x)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu) if self.training else mu
        rec = F.binary_cross_entropy(self.dec(z), x, reduction="none").sum(1)
        kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(1)
        return rec, kl

    @torch.no_grad()
    def sample(self, n):
        return torch.bernoulli(self.dec(torch.randn(n, self.dec.net[0].in_features)))


def main():
    torch.manual_seed(10)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    x = (x[torch.randperm(len(x))] > 0.5).float()
    train, val = x[:1500], x[1500:]
    vae = VAE()
    opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
    epochs, anneal = 15, 8
    for epoch in range(epochs):
        beta = min(1.0, (epoch + 1) / anneal)
        vae.train()
        for idx in torch.randperm(len(train)).split(100):
            rec, kl = vae.elbo_terms(train[idx])
            loss = (rec + beta * kl).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 4:
            vae.eval()
            with torch.no_grad():
                rec, kl = vae.elbo_terms(val)
            print(f"{epoch + 1} beta {beta:.2f} val rec {rec.mean().item():.2f} kl {kl.mean().item():.2f}")
    print("pixels on:", vae.sample(200).mean().item())


if __name__ == "__main__":
    main()
