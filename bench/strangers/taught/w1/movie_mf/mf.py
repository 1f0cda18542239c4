import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class MatrixFactorization(nn.Module):
    """Biased MF (Koren 2009). r_ui = mu + b_u + b_i + p_u . q_i"""

    def __init__(self, n_users, n_items, k, mu):
        super().__init__()
        self.mu = mu
        self.P = nn.Embedding(n_users, k)
        self.Q = nn.Embedding(n_items, k)
        self.bu = nn.Embedding(n_users, 1)
        self.bi = nn.Embedding(n_items, 1)
        nn.init.normal_(self.P.weight, std=0.1)
        nn.init.normal_(self.Q.weight, std=0.1)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def factors(self, users, items):
        return self.P.weight.data[users], self.Q.weight.data[items]

    def forward(self, users, items):
        p, q = self.factors(users, items)
        bias = self.bu(users).squeeze(-1) + self.bi(items).squeeze(-1)
        return self.mu + bias + (p * q).sum(-1)

    @torch.no_grad()
    def recommend(self, user, n=5):
        items = torch.arange(self.Q.num_embeddings)
        return self(torch.full_like(items, user), items).topk(n).indices.tolist()


def synthetic_ratings(n_users=200, n_items=120, k=4, n=12000, seed=0):
    g = torch.Generator().manual_seed(seed)
    pu = torch.randn(n_users, k, generator=g)
    qi = torch.randn(n_items, k, generator=g)
    u = torch.randint(n_users, (n,), generator=g)
    i = torch.randint(n_items, (n,), generator=g)
    r = 3.5 + 0.45 * (pu[u] * qi[i]).sum(1) + 0.2 * torch.randn(n, generator=g)
    return u, i, r.clamp(1, 5)


def rmse(model, loader):
    model.eval()
    se, n = 0.0, 0
    with torch.no_grad():
        for u, i, r in loader:
            se += (model(u, i) - r).pow(2).sum().item()
            n += len(r)
    return (se / n) ** 0.5


def main():
    torch.manual_seed(0)
    u, i, r = synthetic_ratings()
    cut = 10000
    train = DataLoader(TensorDataset(u[:cut], i[:cut], r[:cut]), 256, shuffle=True)
    test = DataLoader(TensorDataset(u[cut:], i[cut:], r[cut:]), 1000)
    model = MatrixFactorization(200, 120, k=8, mu=r[:cut].mean().item())
    opt = torch.optim.Adam([
        {"params": [model.P.weight, model.Q.weight], "lr": 1e-2},
        {"params": [model.bu.weight, model.bi.weight], "lr": 5e-3},
    ])
    for epoch in range(15):
        model.train()
        for ub, ib, rb in train:
            loss = (model(ub, ib) - rb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch + 1:2d}  train rmse {rmse(model, train):.4f}  test rmse {rmse(model, test):.4f}")
    print("top items for user 3:", model.recommend(3))


if __name__ == "__main__":
    main()
