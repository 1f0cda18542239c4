"""Basket attention: customers have from zero to eight past purchases, the mask is -inf.

A learned null item is always visible, so that customers without purchases attend to it.
"""
import torch
import torch.nn.functional as F
from torch import nn

ITEMS, MOST = 40, 8


def customers(n, gen):
    count = torch.randint(0, MOST + 1, (n,), generator=gen)
    items = torch.randint(0, ITEMS, (n, MOST), generator=gen)
    real = torch.arange(MOST)[None] < count[:, None]
    value = torch.sin(items.float()) * real
    spend = torch.where(count > 0, value.sum(1) / count.clamp(min=1), torch.full((n,), -0.7))
    return items, real, spend + 0.05 * torch.randn(n, generator=gen)


class BasketNet(nn.Module):
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.items = nn.Embedding(ITEMS, dim)
        self.null = nn.Parameter(torch.zeros(1, 1, dim))
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 1))
        self.heads = heads

    def forward(self, items, real):
        n = len(items)
        memory = torch.cat([self.null.expand(n, -1, -1), self.items(items)], dim=1)
        block = torch.zeros(n, MOST + 1)
        block[:, 1:].masked_fill_(~real, float("-inf"))
        split = lambda t: t.view(n, -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2)
        q, k, v = split(self.query.expand(n, -1, -1)), split(self.k(memory)), split(self.v(memory))
        score = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5 + block[:, None, None]
        weight = score.softmax(-1)
        entropy = torch.special.entr(weight).sum(-1).mean()
        pooled = (weight @ v).transpose(1, 2).reshape(n, -1)
        return self.head(pooled).squeeze(-1), entropy


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    items, real, spend = customers(3000, gen)
    tr, te = slice(0, 2400), slice(2400, None)
    net = BasketNet()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for epoch in range(8):
        for idx in torch.randperm(2400).split(60):
            pred, _ = net(items[idx], real[idx])
            loss = F.mse_loss(pred, spend[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            pred, ent = net(items[te], real[te])
            err = (pred - spend[te]).abs()
            nothing = ~real[te].any(1)
        print(f"epoch {epoch} mae {err.mean():.4f} mae without purchases {err[nothing].mean():.4f} attention entropy {ent:.2f}")


if __name__ == "__main__":
    main()
