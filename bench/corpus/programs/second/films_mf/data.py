import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Ratings(Dataset):
    """(user, film, stars) triples."""

    def __init__(self, users, films, stars):
        self.users = torch.as_tensor(users, dtype=torch.long)
        self.films = torch.as_tensor(films, dtype=torch.long)
        self.stars = torch.as_tensor(stars, dtype=torch.float32)

    def __len__(self):
        return self.stars.shape[0]

    def __getitem__(self, i):
        return self.users[i], self.films[i], self.stars[i]


def generate(cfg, seed):
    """Simulate a film club: popular films are rated more, stars in 0.5 steps."""
    rng = np.random.default_rng(seed)
    u = rng.normal(0, 0.8, (cfg.n_users, cfg.rank))
    v = rng.normal(0, 0.8, (cfg.n_films, cfg.rank))
    bu = rng.normal(0, 0.35, cfg.n_users)
    bf = rng.normal(0, 0.45, cfg.n_films)

    popularity = rng.gamma(2.0, 1.0, cfg.n_films) + 0.3
    popularity /= popularity.sum()
    # sample distinct cells
    weights = np.repeat(popularity[None] / cfg.n_users, cfg.n_users, axis=0).ravel()
    cells = rng.choice(weights.size, size=cfg.n_ratings, replace=False, p=weights / weights.sum())
    users, films = cells // cfg.n_films, cells % cfg.n_films

    stars = 3.3 + bu[users] + bf[films] + (u[users] * v[films]).sum(1) * 0.7
    stars += rng.normal(0, cfg.noise, cfg.n_ratings)
    stars = np.clip(np.round(stars * 2) / 2, 0.5, 5.0)
    return users, films, stars


def make_loaders(cfg, batch_size, seed):
    users, films, stars = generate(cfg, seed)
    n = len(stars)
    order = np.random.default_rng(seed + 1).permutation(n)
    n_val, n_test = int(n * cfg.val_share), int(n * cfg.test_share)
    parts = {
        "val": order[:n_val],
        "test": order[n_val : n_val + n_test],
        "train": order[n_val + n_test :],
    }
    loaders = {}
    for name, idx in parts.items():
        ds = Ratings(users[idx], films[idx], stars[idx])
        loaders[name] = DataLoader(ds, batch_size=batch_size, shuffle=(name == "train"))
    return loaders
