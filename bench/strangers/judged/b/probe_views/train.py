"""Contrastive pretraining (NT-Xent), then a linear probe on the frozen encoder."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from views import TwoViews


def nt_xent(a, b, tau=0.2):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.T / tau
    sim.fill_diagonal_(float("-inf"))
    n = len(a)
    partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, partner)


def make():
    encoder = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                            nn.Flatten())
    projector = nn.Sequential(nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 32))
    return encoder, projector


@torch.no_grad()
def embed(encoder, x):
    encoder.eval()
    return torch.cat([encoder(b) for b in x.split(256)]).numpy()


def probe(encoder, fit, held):
    (xf, yf), (xh, yh) = fit, held
    scale = StandardScaler().fit(embed(encoder, xf))
    clf = LogisticRegression(max_iter=200).fit(scale.transform(embed(encoder, xf)), yf)
    return clf.score(scale.transform(embed(encoder, xh)), yh)


if __name__ == "__main__":
    torch.manual_seed(55)
    d = load_digits()
    x, y = torch.tensor(d.images[:, None] / 16, dtype=torch.float32), d.target
    order = torch.randperm(len(x))
    pool, held = order[:1400], order[1400:]
    few = pool[:150]                                    # labels for the probe
    pair = lambda rows: (x[rows], y[rows.numpy()])
    encoder, projector = make()
    params = [*encoder.parameters(), *projector.parameters()]
    opt = torch.optim.AdamW(params, 2e-3, weight_decay=1e-4)
    views = TwoViews(seed=55)
    print(f"random encoder: probe {probe(encoder, pair(few), pair(held)):.3f}")
    for epoch in range(4):
        encoder.train(), projector.train()
        total = 0.0
        steps = pool[torch.randperm(len(pool))].split(140)
        for rows in steps:
            a, b = views(x[rows])
            opt.zero_grad()
            loss = nt_xent(projector(encoder(a)), projector(encoder(b)))
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: nt-xent {total / len(steps):.3f} probe {probe(encoder, pair(few), pair(held)):.3f}")
