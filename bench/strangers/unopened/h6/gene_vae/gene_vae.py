import numpy as np
import torch
import torch.nn as nn


def expression(n, seed, n_genes=60, programs=5):
    w = np.random.default_rng(0).gamma(1.0, 1.0, (programs, n_genes)) * (np.random.default_rng(1).random((programs, n_genes)) < 0.3)
    rng = np.random.default_rng(seed)
    use = rng.dirichlet(np.ones(programs) * 0.5, n) * 6
    counts = rng.poisson(use @ w)
    return torch.tensor(np.log1p(counts), dtype=torch.float32)


class GeneVAE(nn.Module):
    def __init__(self, genes, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(genes, 96), nn.ELU())
        self.mu, self.lv = nn.Linear(96, latent), nn.Linear(96, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 96), nn.ELU(), nn.Linear(96, genes))
        self.log_noise = nn.Parameter(torch.zeros(genes))

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.lv(h).clamp(-7, 4)
        z = mu + torch.randn_like(mu) * (lv / 2).exp() if self.training else mu
        return self.dec(z), mu, lv

    def nll(self, x, rec):
        s = self.log_noise
        return (0.5 * ((x - rec) / s.exp()) ** 2 + s).sum(-1).mean()


def kl_per_unit(mu, lv):
    return 0.5 * (mu ** 2 + lv.exp() - 1 - lv).mean(0)


def beta(epoch, cycle=6):
    """Cyclical: zero in the first third of each cycle, then a ramp to one."""
    t = (epoch % cycle) / cycle
    return min(1.0, max(0.0, (t - 0.34) / 0.33))


torch.manual_seed(0)
train, test = expression(1500, 2), expression(300, 3)
net = GeneVAE(train.shape[1])
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
FREE_BITS = 0.1

for epoch in range(18):
    net.train()
    for idx in torch.randperm(len(train)).split(64):
        x = train[idx]
        rec, mu, lv = net(x)
        kl = kl_per_unit(mu, lv).clamp(min=FREE_BITS).sum()
        loss = net.nll(x, rec) + beta(epoch) * kl
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
    if epoch % 3 == 2:
        net.eval()
        with torch.no_grad():
            rec, mu, lv = net(test)
            k = kl_per_unit(mu, lv)
            r2 = 1 - (test - rec).pow(2).sum() / (test - test.mean(0)).pow(2).sum()
        print(f"epoch {epoch:2d} beta {beta(epoch):.2f} loss {loss.item():8.3f} kl {k.sum():.2f} active {int((k > 0.12).sum())} R2 {r2:.3f}")
