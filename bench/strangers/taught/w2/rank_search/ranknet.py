"""RankNet on synthetic search logs; double precision because the scores are compared with the old C++ ranker."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def queries(n_queries, n_docs=20, d=15, seed=0):
    rng = np.random.default_rng(seed)
    w1 = np.random.default_rng(11).normal(size=(d, 6))
    out = []
    for _ in range(n_queries):
        x = rng.normal(size=(n_docs, d))
        rel = np.abs(x @ w1).max(1) + rng.normal(0, 0.2, n_docs)
        grade = np.digitize(rel, np.quantile(rel, [0.5, 0.75, 0.9]))
        out.append((torch.from_numpy(x), torch.from_numpy(grade)))
    return out


class Scorer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, docs):
        return self.net(docs)


def ranknet_loss(scores, grades):
    """scores (n, 1); every document of a query against every other one."""
    diff = scores - scores.squeeze(1)
    better = grades.unsqueeze(1) > grades
    gain = (2.0 ** grades.unsqueeze(1) - 2.0 ** grades).abs()
    pair = F.softplus(-diff)
    return (pair * gain)[better].sum() / gain[better].sum()


def ndcg(scores, grades, k=5):
    disc = 1 / torch.log2(torch.arange(2, k + 2).to(scores.dtype))
    top = grades[scores.argsort(descending=True)[:k]]
    ideal = grades.sort(descending=True).values[:k]
    return (((2.0 ** top - 1) * disc).sum() / ((2.0 ** ideal - 1) * disc).sum()).item()


def mean_ndcg(model, data):
    with torch.no_grad():
        return sum(ndcg(model(x).squeeze(1), g) for x, g in data) / len(data)


def main():
    torch.manual_seed(0)
    train, test = queries(200), queries(60, seed=1)
    model = Scorer(15)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"start ndcg@5 {mean_ndcg(model, test):.3f}")
    for epoch in range(12):
        order = torch.randperm(len(train)).tolist()
        total = 0.0
        for start in range(0, len(order), 10):
            loss = sum(ranknet_loss(model(train[i][0]), train[i][1]) for i in order[start:start + 10]) / 10
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} loss {total / 20:.4f} ndcg@5 {mean_ndcg(model, test):.3f}")


if __name__ == "__main__":
    main()
