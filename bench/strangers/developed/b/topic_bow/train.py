"""Topic classifier over bags of words. Functional style: a model is a (init, apply) pair over a dict of arrays."""
import math
from typing import Callable, Iterator, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

TOPICS = ("sport", "politics", "science", "food", "travel")
VOCAB = 300


class Split(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def read_corpus(seed: int = 0, per_topic: int = 240) -> dict[str, Split]:
    """One directory per topic in the original; the first 80% of each directory are for training."""
    g = np.random.default_rng(seed)
    themes = g.dirichlet(np.full(VOCAB, 0.15), len(TOPICS))
    background = g.dirichlet(np.full(VOCAB, 1.0))
    parts: dict[str, list] = {"train": [], "dev": []}
    for t, _ in enumerate(TOPICS):
        docs = np.stack([g.multinomial(40, 0.35 * themes[t] + 0.65 * background) for _ in range(per_topic)])
        cut = int(0.8 * per_topic)
        parts["train"].append((docs[:cut], np.full(cut, t)))
        parts["dev"].append((docs[cut:], np.full(per_topic - cut, t)))
    return {
        k: Split(
            torch.log1p(torch.tensor(np.concatenate([a for a, _ in v]), dtype=torch.float32)),
            torch.tensor(np.concatenate([b for _, b in v])),
        )
        for k, v in parts.items()
    }


def batches(split: Split, size: int, rng: torch.Generator | None = None) -> Iterator[Split]:
    n = len(split.y)
    order = torch.arange(n) if rng is None else torch.randperm(n, generator=rng)
    for chunk in order.split(size):
        yield Split(split.x[chunk], split.y[chunk])


def mlp(sizes: list[int]) -> tuple[Callable, Callable]:
    def init(rng: torch.Generator) -> dict[str, torch.Tensor]:
        p = {}
        for k, (i, o) in enumerate(zip(sizes, sizes[1:])):
            p[f"w{k}"] = (torch.randn(i, o, generator=rng) * math.sqrt(2 / i)).requires_grad_()
            p[f"b{k}"] = torch.zeros(o, requires_grad=True)
        return p

    def apply(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        depth = len(sizes) - 1
        for k in range(depth):
            x = x @ p[f"w{k}"] + p[f"b{k}"]
            if k < depth - 1:
                x = F.relu(x)
        return x

    return init, apply


def dev_accuracy(apply: Callable, params: dict, split: Split) -> float:
    with torch.no_grad():
        return sum((apply(params, b.x).argmax(1) == b.y).sum().item() for b in batches(split, 256)) / len(split.y)


def train(epochs: int = 8, size: int = 32, lr: float = 0.05, seed: int = 5) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    corpus = read_corpus()
    init, apply = mlp([VOCAB, 64, len(TOPICS)])
    params = init(rng)
    opt = torch.optim.SGD(params.values(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        running = []
        for b in batches(corpus["train"], size):
            loss = F.cross_entropy(apply(params, b.x), b.y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running.append(loss.item())
        print(f"epoch {epoch}  loss {np.mean(running):.3f}  dev acc {dev_accuracy(apply, params, corpus['dev']):.3f}")
    return params


if __name__ == "__main__":
    train()
