from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

import torch
from torch import Tensor, nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Settings:
    users: int = 200
    movies: int = 150
    factors: int = 16
    ratings: int = 12_000
    lr: float = 5e-3
    decay: float = 1e-2
    epochs: int = 8
    batch_size: int = 512
    seed: int = 13


class NeuralFactorization(nn.Module):
    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.user_table = nn.Embedding(s.users, s.factors)
        self.movie_table = nn.Embedding(s.movies, s.factors)
        for table in (self.user_table, self.movie_table):
            nn.init.normal_(table.weight, std=0.1)
        self.norm = nn.LayerNorm(2 * s.factors)
        self.tower = nn.Sequential(nn.Linear(2 * s.factors, 32), nn.ReLU(), nn.Linear(32, 1))
        self.mean = nn.Parameter(torch.zeros(()))

    def forward(self, user: Tensor, movie: Tensor) -> Tensor:
        u, m = self.user_table(user), self.movie_table(movie)
        joint = self.tower(self.norm(torch.cat([u, m], dim=-1))).squeeze(-1)
        return self.mean + (u * m).sum(-1) + joint


def parameter_groups(model: nn.Module, decay: float) -> list[dict]:
    regularised, free = [], []
    for name, p in model.named_parameters():
        if p.ndim >= 2 and "table" not in name:
            regularised.append(p)
        elif p.ndim < 2:
            free.append(p)
    return [{"params": regularised, "weight_decay": decay}, {"params": free, "weight_decay": 0.0}]


def simulate(s: Settings) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(s.seed)
    taste = torch.randn(s.users, 3, generator=g)
    genre = torch.randn(s.movies, 3, generator=g)
    u = torch.randint(s.users, (s.ratings,), generator=g)
    m = torch.randint(s.movies, (s.ratings,), generator=g)
    r = 3.0 + 0.6 * (taste[u] * genre[m]).sum(-1) + 0.2 * torch.randn(s.ratings, generator=g)
    return u, m, r.clamp(1, 5)


def batches(n: int, size: int) -> Iterator[Tensor]:
    yield from torch.randperm(n).split(size)


def main(s: Settings = Settings()) -> None:
    torch.manual_seed(s.seed)
    u, m, r = simulate(s)
    cut = int(0.85 * s.ratings)
    model = NeuralFactorization(s)
    opt = torch.optim.AdamW(parameter_groups(model, s.decay), lr=s.lr)
    for epoch in range(s.epochs):
        model.train()
        running = 0.0
        for b in batches(cut, s.batch_size):
            loss = F.mse_loss(model(u[b], m[b]), r[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item() * len(b)
        model.eval()
        with torch.no_grad():
            rmse = F.mse_loss(model(u[cut:], m[cut:]), r[cut:]).sqrt().item()
        print(f"epoch {epoch}: train mse {running / cut:.4f}, test rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
