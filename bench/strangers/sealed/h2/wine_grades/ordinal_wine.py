# Wine quality has an order (3 < 4 < ... < 8), so: cumulative link network.
import numpy as np
import torch
from sklearn.metrics import cohen_kappa_score
from torch import nn

rng = np.random.default_rng(0)
GRADES = np.arange(3, 9)                     # six quality grades in the data
K = len(GRADES)

chem = rng.normal(size=(1600, 11))
latent = chem[:, 0] - 0.8 * chem[:, 1] + 0.7 * np.abs(chem[:, 2]) + 0.4 * rng.normal(size=1600)
quality = GRADES[np.digitize(latent, [-1.6, -0.6, 0.5, 1.6, 2.6])]

X = torch.tensor(chem, dtype=torch.float32)
rank = torch.tensor(quality - GRADES[0])     # 0 .. K-1
X_tr, X_te, r_tr, r_te = X[:1200], X[1200:], rank[:1200], rank[1200:]


def to_levels(r):
    """rank 2 of 6 -> [1, 1, 0, 0, 0]: 'better than grade j' for every threshold j."""
    return (r[:, None] > torch.arange(K - 1)).float()


class CumulativeLink(nn.Module):
    def __init__(self, n_in, n_thresholds):
        super().__init__()
        self.score = nn.Sequential(
            nn.Linear(n_in, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1, bias=False)
        )
        self.first = nn.Parameter(torch.tensor(2.0))
        self.gaps = nn.Parameter(torch.zeros(n_thresholds - 1))

    def cuts(self):
        steps = nn.functional.softplus(self.gaps).cumsum(0)
        return torch.cat([self.first.view(1), self.first - steps])

    def forward(self, x):
        return self.score(x) + self.cuts()


model = CumulativeLink(X.shape[1], K - 1)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)


def predict(x):
    with torch.no_grad():
        return (torch.sigmoid(model(x)) > 0.5).sum(1)


for epoch in range(1, 31):
    model.train()
    total = 0.0
    for b in torch.randperm(len(X_tr)).split(64):
        loss = nn.functional.binary_cross_entropy_with_logits(model(X_tr[b]), to_levels(r_tr[b]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(b)
    if epoch % 6 == 0:
        model.eval()
        pred = predict(X_te)
        mae = (pred - r_te).abs().float().mean().item()
        kappa = cohen_kappa_score(r_te, pred, weights="quadratic")
        print(f"epoch {epoch:2d}: loss {total / len(X_tr):.4f}, MAE {mae:.3f} grades, kappa {kappa:.3f}")

print("thresholds:", [round(c, 2) for c in model.cuts().tolist()])
