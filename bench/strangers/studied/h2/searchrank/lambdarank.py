"""Learning to rank: pairwise logistic loss within each query, weighted by the change in DCG."""
import numpy as np
import torch
from torch import nn


def queries(n_queries, docs=12, n_feat=10, seed=0):
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(1234).normal(size=n_feat)
    x = rng.normal(size=(n_queries, docs, n_feat))
    util = np.tanh(x @ w / 2) + 0.5 * np.maximum(x[..., 0] * x[..., 1], 0) + 0.2 * rng.normal(size=(n_queries, docs))
    grade = np.digitize(util, [-0.5, 0.3, 0.9, 1.4])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(grade)


def ideal_dcg(grade):
    gains = (2.0 ** grade - 1).sort(descending=True).values
    return (gains / torch.log2(torch.arange(2.0, len(grade) + 2))).sum().clamp(min=1e-6)


def lambda_loss(score, grade):
    """score, grade: (docs,) of one query."""
    rank = score.detach().argsort(descending=True).argsort() + 1
    gain = 2.0 ** grade - 1
    discount = 1 / torch.log2(1 + rank.float())
    better = (grade[:, None] > grade[None, :]).float()
    delta = (gain[:, None] - gain[None, :]).abs() * (discount[:, None] - discount[None, :]).abs()
    diff = score.unsqueeze(1) - score
    pairwise = nn.functional.softplus(-diff)
    return (better * delta * pairwise).sum() / ideal_dcg(grade)


def ndcg(score, grade, k=5):
    order = score.argsort(descending=True)[:k]
    gains = (2.0 ** grade[order] - 1) / torch.log2(torch.arange(2.0, k + 2))
    top = (2.0 ** grade - 1).sort(descending=True).values[:k] / torch.log2(torch.arange(2.0, k + 2))
    return (gains.sum() / top.sum().clamp(min=1e-6)).item()


class Scorer(nn.Module):
    def __init__(self, n_feat, hidden=32):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(n_feat, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, docs):
        return self.f(docs)[..., 0]


def main():
    torch.manual_seed(0)
    x, g = queries(300, seed=1)
    xt, gt = queries(80, seed=2)
    model = Scorer(x.shape[-1])
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)

    def report(tag):
        with torch.no_grad():
            value = np.mean([ndcg(s, gr) for s, gr in zip(model(xt), gt)])
        print(f"{tag}: NDCG@5 {value:.3f}")

    report("untrained")
    for epoch in range(5):
        for q in torch.randperm(len(x)).split(10):
            loss = sum(lambda_loss(s, gr) for s, gr in zip(model(x[q]), g[q])) / len(q)
            opt.zero_grad()
            loss.backward()
            opt.step()
        report(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
