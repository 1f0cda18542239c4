import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from losses import batch_all_triplet


class PKSampler(Sampler):
    """P classes x K samples per batch."""

    def __init__(self, labels, p, k, n_batches, seed):
        self.by_class = {c: np.flatnonzero(labels == c) for c in np.unique(labels)}
        self.p, self.k, self.n = p, k, n_batches
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.n

    def __iter__(self):
        classes = list(self.by_class)
        for _ in range(self.n):
            picked = self.rng.choice(classes, self.p, replace=False)
            yield [int(i) for c in picked for i in self.rng.choice(self.by_class[c], self.k, replace=False)]


class Embedder(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
        self.fc = nn.Linear(32 * 4 * 4, out)

    def forward(self, x):
        return nn.functional.normalize(self.fc(self.conv(x).flatten(1)), dim=1)


@torch.no_grad()
def embed(net, x):
    net.eval()
    return torch.cat([net(b) for b in x.split(256)]).numpy()


def main():
    torch.manual_seed(66)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16.0
    y = torch.tensor(d.target)
    perm = torch.randperm(len(y))
    tr, te = perm[:1300], perm[1300:]

    sampler = PKSampler(d.target[tr.numpy()], p=6, k=5, n_batches=40, seed=66)
    loader = DataLoader(TensorDataset(x[tr], y[tr]), batch_sampler=sampler)
    net = Embedder()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for ep in range(3):
        net.train()
        for xb, yb in loader:
            opt.zero_grad()
            loss = batch_all_triplet(net(xb), yb)
            loss.backward()
            opt.step()
        print(f"epoch {ep}: triplet {loss.item():.4f}")

    ref, query = embed(net, x[tr]), embed(net, x[te])
    knn = KNeighborsClassifier(5).fit(ref, y[tr].numpy())
    print("5-nn accuracy:", knn.score(query, y[te].numpy()))


if __name__ == "__main__":
    main()
