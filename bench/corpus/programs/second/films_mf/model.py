import torch
from torch import nn


class MatrixFactorisation(nn.Module):
    def __init__(self, n_users, n_films, dim, global_mean):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, dim)
        self.film_factors = nn.Embedding(n_films, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.film_bias = nn.Embedding(n_films, 1)
        self.register_buffer("mu", torch.tensor(float(global_mean)))

        for emb in (self.user_factors, self.film_factors):
            nn.init.normal_(emb.weight, std=0.1)
        for emb in (self.user_bias, self.film_bias):
            nn.init.zeros_(emb.weight)

    def forward(self, users, films):
        p, q = self.user_factors(users), self.film_factors(films)
        bias = self.user_bias(users) + self.film_bias(films)
        return self.mu + bias.squeeze(-1) + (p * q).sum(-1)

    def penalty(self, users, films):
        """Mean squared norm of the factors used in this batch."""
        p, q = self.user_factors(users), self.film_factors(films)
        return p.pow(2).sum(-1).mean() + q.pow(2).sum(-1).mean()
