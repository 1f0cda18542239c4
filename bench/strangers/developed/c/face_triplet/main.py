import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from losses import BatchHard


class PKSampler(Sampler):
    """P identities with K pictures each, per batch."""

    def __init__(self, labels, p, k, batches, seed=0):
        self.groups = {int(c): torch.where(labels == c)[0] for c in labels.unique()}
        self.p, self.k, self.batches = p, k, batches
        self.gen = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.batches

    def __iter__(self):
        names = list(self.groups)
        for _ in range(self.batches):
            batch = []
            for j in torch.randperm(len(names), generator=self.gen)[: self.p].tolist():
                g = self.groups[names[j]]
                batch += g[torch.randperm(len(g), generator=self.gen)[: self.k]].tolist()
            yield batch


def embedder(dim):
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 16, dim),
    )


@torch.no_grad()
def recall_at_1(net, gallery, probes):
    net.eval()
    (gx, gy), (px, py) = gallery.tensors, probes.tensors
    nearest = torch.cdist(net(px), net(gx)).argmin(1)
    return (gy[nearest] == py).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--margin", type=float, default=0.3)
    ap.add_argument("--epochs", type=int, default=3)
    a = ap.parse_args()
    torch.manual_seed(1)

    d = load_digits()
    x, y = torch.tensor(d.images, dtype=torch.float32) / 16, torch.tensor(d.target)
    perm = torch.randperm(len(x))
    tr, te = perm[:1200], perm[1200:]
    train, probe = TensorDataset(x[tr], y[tr]), TensorDataset(x[te], y[te])
    loader = DataLoader(train, batch_sampler=PKSampler(y[tr], p=6, k=4, batches=40))

    net, criterion = embedder(a.dim), BatchHard(a.margin)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(a.epochs):
        net.train()
        for img, ids in loader:
            opt.zero_grad()
            loss = criterion(net(img), ids)
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} recall@1 {recall_at_1(net, train, probe):.3f}")


if __name__ == "__main__":
    main()
