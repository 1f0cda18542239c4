import collections
import itertools

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, Tensor


class BetaVAE(nn.Module):
    def __init__(self, d=64, h=96, z=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.ELU(), nn.Linear(h, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ELU(), nn.Linear(h, d))

    def forward(self, x: Tensor):
        mu, logvar = self.enc(x).chunk(2, -1)
        eps = torch.randn_like(mu) if self.training else torch.zeros_like(mu)
        return self.dec(mu + eps * (0.5 * logvar).exp()), mu, logvar


def elbo_terms(net, x):
    logits, mu, logvar = net(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1).mean()
    return {"rec": rec, "kl": kl}


class Capacity:
    """Controlled capacity increase (Burgess et al. 2018): KL is pulled towards C, which grows linearly."""

    def __init__(self, gamma=4.0, c_max=12.0, steps=300):
        self.gamma, self.c_max, self.steps = gamma, c_max, steps
        self.t = 0
        self.kl_trace = 0.0

    def __call__(self, terms):
        c = min(self.c_max, self.c_max * self.t / self.steps)
        self.t += 1
        self.kl_trace = 0.99 * self.kl_trace + 0.01 * terms["kl"]
        return terms["rec"] + self.gamma * (terms["kl"] - c).abs()

    def report(self):
        return float(self.kl_trace) / (1 - 0.99 ** self.t)


def stream(x, bs, seed):
    g = torch.Generator().manual_seed(seed)
    for epoch in itertools.count():
        for idx in torch.randperm(len(x), generator=g).split(bs):
            yield epoch, x[idx]


@torch.no_grad()
def heldout(net, x):
    net.eval()
    out = {k: v.item() for k, v in elbo_terms(net, x).items()}
    net.train()
    return out


def main(steps=600, bs=64, every=150):
    torch.manual_seed(6)
    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    x_train, x_test = x[:1400], x[1400:]
    net = BetaVAE().train()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    objective = Capacity()
    recent = collections.deque(maxlen=50)
    for step, (epoch, xb) in zip(range(1, steps + 1), stream(x_train, bs, 6)):
        loss = objective(elbo_terms(net, xb))
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append(loss.item())
        if step % every == 0:
            h = heldout(net, x_test)
            print(
                f"step {step} (epoch {epoch}) loss {sum(recent) / len(recent):.2f} kl~{objective.report():.2f} "
                f"| test rec {h['rec']:.2f} kl {h['kl']:.2f}"
            )


if __name__ == "__main__":
    main()
