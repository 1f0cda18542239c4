"""Bayesian personalised ranking on a synthetic rating log.

Two runs with the same --seed are expected to print the same numbers (CI compares them).
"""
from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def fix_seeds(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def interaction_log(n_users: int, n_items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    taste, kind = rng.normal(size=(n_users, 6)), rng.normal(size=(n_items, 6))
    score = taste @ kind.T + rng.gumbel(size=(n_users, n_items))
    ranked = np.argsort(-score, axis=1)[:, :12]
    train, held = [], []
    for u, items in enumerate(ranked):
        items = rng.permutation(items)
        train += [(u, i) for i in items[:10]]
        held += [(u, i) for i in items[10:]]
    return np.array(train), np.array(held)


@dataclass
class NegativeSampler:
    n_items: int
    seen: dict[int, set[int]]
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def draw(self, users: np.ndarray) -> np.ndarray:
        out = self.rng.integers(self.n_items, size=len(users))
        for k, u in enumerate(users):
            while int(out[k]) in self.seen[int(u)]:
                out[k] = self.rng.integers(self.n_items)
        return out


class MatrixFactorisation(nn.Module):
    def __init__(self, n_users: int, n_items: int, dim: int) -> None:
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    @torch.no_grad()
    def all_scores(self) -> torch.Tensor:
        return self.user.weight @ self.item.weight.T + self.bias.weight.T


def recall_at(model: MatrixFactorisation, seen: dict[int, set[int]], held: np.ndarray, k: int = 20) -> float:
    scores = model.all_scores().clone()
    for u, items in seen.items():
        scores[u, list(items)] = -float("inf")
    top = scores.topk(k, dim=1).indices
    hits = sum(int((top[u] == i).any()) for u, i in held)
    return hits / len(held)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    fix_seeds(args.seed)

    n_users, n_items = 200, 150
    train, held = interaction_log(n_users, n_items, seed=args.seed)
    seen: dict[int, set[int]] = {}
    for u, i in train:
        seen.setdefault(int(u), set()).add(int(i))

    model = MatrixFactorisation(n_users, n_items, dim=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    sampler = NegativeSampler(n_items, seen)
    for epoch in range(args.epochs):
        order = torch.randperm(len(train)).numpy()
        total = 0.0
        for chunk in np.array_split(order, 16):
            users, pos = train[chunk, 0], train[chunk, 1]
            neg = sampler.draw(users)
            u, p, n = (torch.from_numpy(a) for a in (users, pos, neg))
            loss = -F.logsigmoid(model(u, p) - model(u, n)).mean()
            loss = loss + 1e-4 * (model.user(u).pow(2).sum() + model.item(p).pow(2).sum()) / len(u)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(u)
        print(f"epoch {epoch} bpr {total / len(train):.5f} recall@20 {recall_at(model, seen, held):.4f}")


if __name__ == "__main__":
    main()
