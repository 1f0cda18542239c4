import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class PKSampler(Sampler):
    """P identities with K images each in every batch."""

    def __init__(self, labels, p, k, batches, seed):
        self.by_id = {c: (labels == c).nonzero().flatten() for c in labels.unique().tolist()}
        self.p, self.k, self.batches = p, k, batches
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.batches

    def __iter__(self):
        ids = list(self.by_id)
        for _ in range(self.batches):
            out = []
            for j in torch.randperm(len(ids), generator=self.g)[: self.p].tolist():
                pool = self.by_id[ids[j]]
                out += pool[torch.randperm(len(pool), generator=self.g)[: self.k]].tolist()
            yield out


def pairwise(e):
    sq = e.pow(2).sum(1)
    d2 = sq[:, None] + sq[None, :] - 2 * e @ e.t()
    return d2.clamp(min=0).sqrt()


def batch_hard(e, ids, margin=0.3):
    d = pairwise(e)
    same = ids[:, None] == ids[None, :]
    eye = torch.eye(len(ids), dtype=torch.bool, device=ids.device)
    positive = (d * (same & ~eye)).amax(1)
    negative = (d + 1e3 * same).amin(1)
    return torch.relu(positive - negative + margin).mean()


def faces(n_ids, per_id, seed):
    g = torch.Generator().manual_seed(seed)
    centre = torch.randn(n_ids, 40, generator=g)
    ids = torch.arange(n_ids).repeat_interleave(per_id)
    return centre[ids] + 0.9 * torch.randn(len(ids), 40, generator=g), ids


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=1)


@torch.no_grad()
def recall_at_1(model, x, ids):
    model.eval()
    d = pairwise(model(x)).fill_diagonal_(float("inf"))
    return (ids[d.argmin(1)] == ids).float().mean().item()


def main():
    torch.manual_seed(25)
    x, ids = faces(40, 10, 0)
    xv, idv = faces(20, 10, 1)
    loader = DataLoader(TensorDataset(x, ids), batch_sampler=PKSampler(ids, 8, 4, batches=40, seed=3))
    model = Embedder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"untrained recall {recall_at_1(model, xv, idv):.3f}")
    for epoch in range(4):
        model.train()
        total = 0.0
        for xb, ib in loader:
            loss = batch_hard(model(xb), ib)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} recall {recall_at_1(model, xv, idv):.3f}")


if __name__ == "__main__":
    main()
