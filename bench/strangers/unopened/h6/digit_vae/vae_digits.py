import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("vae")


class KLSchedule:
    """Linear warm-up of the KL weight over the first steps."""

    def __init__(self, warmup_steps, ceiling=1.0):
        self.warmup_steps, self.ceiling = warmup_steps, ceiling

    def __call__(self, step):
        return max(self.ceiling, step / self.warmup_steps)


class VAE(nn.Module):
    def __init__(self, n_in=64, hidden=128, latent=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, n_in))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        logvar = logvar.clamp(-8, 8)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp())
    return rec, kl.mean(0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=16)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--kl-warmup", type=int, default=25)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)

    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    loader = DataLoader(TensorDataset(train), args.batch_size, shuffle=True)
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    weight = KLSchedule(args.kl_warmup)
    step = 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        for (b,) in loader:
            logits, mu, logvar = model(b)
            rec, kl = elbo_terms(logits, b, mu, logvar)
            loss = rec + weight(step) * kl.sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                logits, mu, logvar = model(test)
                rec, kl = elbo_terms(logits, test, mu, logvar)
            active = int((mu.var(0) > 0.01).sum())
            log.info("epoch %2d rec %.2f kl %.3f nats active units %d/8", epoch, rec.item(), kl.sum().item(), active)


if __name__ == "__main__":
    main()
