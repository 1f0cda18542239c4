# Gaussian process regression, hyperparameters by type-II maximum likelihood.
import math
from typing import NamedTuple

import torch
from torch import Tensor


class Hyper(NamedTuple):
    log_len: Tensor
    log_amp: Tensor
    log_noise: Tensor


def init_hyper(d: int) -> Hyper:
    def leaf(t):
        return t.double().requires_grad_()
    return Hyper(leaf(torch.zeros(d)), leaf(torch.zeros(())), leaf(torch.tensor(-1.0)))


def rbf(a: Tensor, b: Tensor, hp: Hyper) -> Tensor:
    inv = torch.exp(-hp.log_len)
    d2 = ((a[:, None] - b[None]) * inv).pow(2).sum(-1)
    return torch.exp(2 * hp.log_amp - 0.5 * d2)


def add_noise(gram: Tensor, hp: Hyper, jitter: float = 1e-6) -> Tensor:
    eye = torch.eye(len(gram), dtype=gram.dtype)
    return gram + (torch.exp(2 * hp.log_noise) + jitter) * eye


def neg_log_marginal(gram: Tensor, y: Tensor, hp: Hyper) -> Tensor:
    L = torch.linalg.cholesky(add_noise(gram, hp))
    alpha = torch.cholesky_solve(y[:, None], L)[:, 0]
    n = len(y)
    return (0.5 * y @ alpha + L.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)) / n


def fit(x: Tensor, y: Tensor, steps: int = 80, lr: float = 0.05) -> Hyper:
    hp = init_hyper(x.shape[1])
    opt = torch.optim.Adam(hp, lr=lr)
    gram = rbf(x, x, hp)
    for i in range(steps):
        opt.zero_grad()
        nll = neg_log_marginal(gram, y, hp)
        nll.backward()
        opt.step()
        if i % 20 == 0:
            print(f"step {i:3d} nll/n {nll.item():.4f}")
    return hp


@torch.no_grad()
def predict(x: Tensor, y: Tensor, xs: Tensor, hp: Hyper):
    L = torch.linalg.cholesky(add_noise(rbf(x, x, hp), hp))
    ks = rbf(x, xs, hp)
    mean = ks.T @ torch.cholesky_solve(y[:, None], L)[:, 0]
    v = torch.linalg.solve_triangular(L, ks, upper=False)
    var = torch.exp(2 * hp.log_amp) - v.pow(2).sum(0)
    return mean, var.clamp_min(0) + torch.exp(2 * hp.log_noise)


def target(x: Tensor) -> Tensor:
    return torch.sin(3 * x[:, 0]) + 0.4 * x[:, 1] ** 2


if __name__ == "__main__":
    g = torch.Generator().manual_seed(0)
    X = torch.rand(160, 2, generator=g, dtype=torch.float64) * 4 - 2
    Y = target(X) + 0.1 * torch.randn(160, generator=g, dtype=torch.float64)
    x_tr, x_te, y_tr, y_te = X[:110], X[110:], Y[:110], Y[110:]
    shift = y_tr.mean()
    hp = fit(x_tr, y_tr - shift)
    mean, var = predict(x_tr, y_tr - shift, x_te, hp)
    print("rmse", (mean + shift - y_te).pow(2).mean().sqrt().item(), "mean sd", var.sqrt().mean().item())
