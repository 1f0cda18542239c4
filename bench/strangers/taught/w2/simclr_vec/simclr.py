"""SimCLR on tabular vectors (SCARF-style corruption), then a linear probe."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler


class NTXentLoss(nn.Module):
    def __init__(self, temperature=0.2, normalize=True):
        self.temperature = temperature
        self.normalize = normalize

    def forward(self, za, zb):
        n = za.size(0)
        z = torch.cat([za, zb])
        if self.normalize:
            z = F.normalize(z, dim=1)
        sim = z @ z.t() / self.temperature
        sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z.device), float("-inf"))
        target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
        return F.cross_entropy(sim, target)


class Encoder(nn.Module):
    def __init__(self, d_in, d_hidden=64, d_proj=32):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(d_in, d_hidden), nn.ReLU(),
            nn.Linear(d_hidden, d_hidden), nn.ReLU(),
        )
        self.projector = nn.Sequential(nn.Linear(d_hidden, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_proj))

    def forward(self, x):
        return self.projector(self.backbone(x))


def corrupt(x, pool, rate=0.4):
    mask = torch.rand_like(x) < rate
    rows = torch.randint(len(pool), x.shape)
    cols = torch.arange(x.shape[1]).expand_as(rows)
    return torch.where(mask, pool[rows, cols], x)


def probe(encoder, X, y, n_train=120):
    encoder.eval()
    with torch.no_grad():
        h = encoder.backbone(X).numpy()
    clf = LogisticRegression(max_iter=500).fit(h[:n_train], y[:n_train])
    return clf.score(h[n_train:], y[n_train:])


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_wine(return_X_y=True)
    perm = torch.randperm(len(X)).numpy()
    X, y = X[perm], y[perm]
    X = torch.tensor(StandardScaler().fit(X[:120]).transform(X), dtype=torch.float32)
    unlabeled = X[:120]

    enc = Encoder(X.shape[1])
    criterion = NTXentLoss(temperature=0.2)
    opt = torch.optim.AdamW(enc.parameters(), lr=1e-3)
    for epoch in range(60):
        enc.train()
        running = 0.0
        chunks = torch.randperm(len(unlabeled)).split(60)
        for idx in chunks:
            xb = unlabeled[idx]
            loss = criterion(enc(xb), enc(corrupt(xb, unlabeled)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        if (epoch + 1) % 15 == 0:
            print(f"{epoch + 1:3d}  nt-xent {running / len(chunks):.3f}  probe {probe(enc, X, y):.3f}")
