"""No nn.Module, no optimizer: pytrees of tensors, per-example clipping, heavy-ball written out (in the manner of jax)."""
import math
from functools import partial
from typing import Callable, Iterator

import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor
from torch.func import grad_and_value, vmap

Layer = tuple[Tensor, Tensor]
Net = list[Layer]


def init(sizes: list[int], gen: torch.Generator) -> Net:
    return [(torch.randn(i, o, generator=gen) * math.sqrt(2 / i), torch.zeros(o)) for i, o in zip(sizes, sizes[1:])]


def apply(net: Net, x: Tensor) -> Tensor:
    *hidden, (w, b) = net
    for wh, bh in hidden:
        x = torch.relu(x @ wh + bh)
    return (x @ w + b).squeeze(-1)


def objective(net: Net, x: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(apply(net, x), y)


def clipped(grads: Net, limit: float) -> Net:
    """Per-example gradients (leading axis = example) -> mean of the clipped ones."""
    norm = sum(g.flatten(1).pow(2).sum(1) for pair in grads for g in pair).add(1e-12).sqrt()
    k = (limit / norm).clamp(max=1.0)
    return [tuple(torch.tensordot(k, g, dims=1) / len(k) for g in pair) for pair in grads]


def heavy_ball(net: Net, vel: Net, g: Net, lr: float, mu: float) -> tuple[Net, Net]:
    vel = [tuple(mu * v + d for v, d in zip(vp, gp)) for vp, gp in zip(vel, g)]
    net = [tuple(p - lr * v for p, v in zip(pp, vp)) for pp, vp in zip(net, vel)]
    return net, vel


def batches(x: Tensor, y: Tensor, size: int, gen: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    for idx in torch.randperm(len(x), generator=gen).split(size):
        yield x[idx], y[idx]


def fit(net: Net, data: Callable, epochs: int, lr: Callable[[int], float], limit: float = 1.0, mu: float = 0.9):
    per_example = vmap(grad_and_value(objective), in_dims=(None, 0, 0))
    vel = [tuple(torch.zeros_like(p) for p in pair) for pair in net]
    for e in range(epochs):
        losses = []
        for xb, yb in data():
            g, value = per_example(net, xb, yb)
            net, vel = heavy_ball(net, vel, clipped(g, limit), lr(e), mu)
            losses.append(value.mean().item())
        yield e, net, sum(losses) / len(losses)


def main() -> None:
    gen = torch.Generator().manual_seed(20)
    raw = load_breast_cancer()
    x, y = torch.tensor(raw.data, dtype=torch.float32), torch.tensor(raw.target, dtype=torch.float32)
    order = torch.randperm(len(x), generator=gen)
    tr, te = order[:430], order[430:]
    x = (x - x[tr].mean(0)) / x[tr].std(0)
    net = init([30, 32, 16, 1], gen)
    source = partial(batches, x[tr], y[tr], 32, gen)
    for e, net, loss in fit(net, source, epochs=10, lr=lambda e: 0.05 * 0.9 ** e):
        if e % 3 == 0:
            acc = ((apply(net, x[te]) > 0).float() == y[te]).float().mean()
            print(f"epoch {e} loss {loss:.4f} held-out accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
