# Heteroscedastic regression, functional style: parameters are a plain dict, the net is a function.
from typing import Callable, Iterator

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import Tensor

Params = dict[str, Tensor]


def init(sizes: list[int], gen: torch.Generator) -> Params:
    p: Params = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        p[f"w{i}"] = (torch.randn(a, b, generator=gen) * (2 / a) ** 0.5).requires_grad_()
        p[f"b{i}"] = torch.zeros(b, requires_grad=True)
    return p


def apply(p: Params, x: Tensor) -> tuple[Tensor, Tensor]:
    n = len(p) // 2
    for i in range(n):
        x = x @ p[f"w{i}"] + p[f"b{i}"]
        if i < n - 1:
            x = torch.nn.functional.silu(x)
    mu, log_var = x.split(1, dim=1)
    return mu, log_var.clamp(-6, 6)


def gaussian_nll(p: Params, x: Tensor, y: Tensor) -> Tensor:
    mu, log_var = apply(p, x)
    return 0.5 * (log_var + (y - mu) ** 2 * torch.exp(-log_var)).mean()


def minibatches(x: Tensor, y: Tensor, size: int, gen: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        for idx in torch.randperm(len(x), generator=gen).split(size):
            yield x[idx], y[idx]


def make_update(loss_fn: Callable, opt: torch.optim.Optimizer):
    def update(p: Params, x: Tensor, y: Tensor) -> float:
        opt.zero_grad()
        value = loss_fn(p, x, y)
        value.backward()
        opt.step()
        return value.item()
    return update


def load(seed: int):
    X, y = load_diabetes(return_X_y=True)
    xtr, xte, ytr, yte = train_test_split(X, y, test_size=0.25, random_state=seed)
    stats = xtr.mean(0), xtr.std(0), ytr.mean(), ytr.std()
    f = lambda a: torch.tensor(a, dtype=torch.float32)
    return (f((xtr - stats[0]) / stats[1]), f((ytr - stats[2]) / stats[3]),
            f((xte - stats[0]) / stats[1]), f((yte - stats[2]) / stats[3]))


def main(seed: int = 5, steps: int = 400) -> None:
    gen = torch.Generator().manual_seed(seed)
    xtr, ytr, xte, yte = load(seed)
    params = init([xtr.shape[1], 32, 2], gen)
    opt = torch.optim.Adam(params.values(), lr=3e-3, weight_decay=1e-4)
    update = make_update(gaussian_nll, opt)

    stream = minibatches(xtr, ytr, 32, gen)
    for step in range(1, steps + 1):
        nll = update(params, *next(stream))
        if step % 100 == 0:
            with torch.no_grad():
                mu, _ = apply(params, xte)
                rmse = (mu[:, 0] - yte).pow(2).mean().sqrt().item()
            print(f"{step:5d} train nll {nll:.3f}  test rmse {rmse:.3f} (in units of the target's sd)")


if __name__ == "__main__":
    main()
