import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from common import set_seed, synthetic_interactions
from sampler import NegativeSampler


class MF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.u = nn.Embedding(n_users, dim)
        self.v = nn.Embedding(n_items, dim)
        self.b = nn.Embedding(n_items, 1)
        for e in (self.u, self.v):
            nn.init.normal_(e.weight, std=0.1)
        nn.init.zeros_(self.b.weight)

    def forward(self, users, items):
        return (self.u(users) * self.v(items)).sum(-1) + self.b(items).squeeze(-1)

    def all_scores(self):
        return self.u.weight @ self.v.weight.T + self.b.weight.T


@torch.no_grad()
def hit_rate(model, train, test, k=10):
    s = model.all_scores().clone()
    s[train[:, 0], train[:, 1]] = -torch.inf
    top = s.topk(k, dim=1).indices
    return (top == test[:, None]).any(1).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--reg", type=float, default=1e-4)
    args = ap.parse_args()
    set_seed(args.seed)

    train_np, test_np = synthetic_interactions()
    train, test = torch.from_numpy(train_np), torch.from_numpy(test_np)
    model = MF(200, 150, args.dim)
    negatives = NegativeSampler(train_np, 150)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        losses = []
        for idx in torch.randperm(len(train)).split(256):
            users, pos = train[idx, 0], train[idx, 1]
            neg = negatives(users)
            diff = model(users, pos) - model(users, neg)
            loss = -F.logsigmoid(diff).mean()
            reg = model.u(users).pow(2).sum(1) + model.v(pos).pow(2).sum(1) + model.v(neg).pow(2).sum(1)
            loss = loss + args.reg * reg.mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            print(f"seed {args.seed} epoch {epoch + 1} loss {sum(losses) / len(losses):.6f} HR@10 {hit_rate(model, train, test):.4f}")


if __name__ == "__main__":
    main()
