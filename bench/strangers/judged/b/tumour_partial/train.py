"""Functional-style tabular classifier: everything is a partial, nothing is a class."""
from functools import partial, reduce
from itertools import count
from typing import Callable, Iterator, NamedTuple

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED, WIDTH, STEPS, EVERY = 11, 48, 300, 60


class Split(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def get_splits(seed: int) -> dict[str, Split]:
    x, y = load_breast_cancer(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(xa)
    pack = lambda x, y: Split(torch.tensor(scaler.transform(x), dtype=torch.float32), torch.tensor(y))
    return {"fit": pack(xa, ya), "dev": pack(xb, yb)}


def stream(split: Split, batch: int, gen: torch.Generator) -> Iterator[Split]:
    """Endless shuffled minibatches."""
    for _ in count():
        for rows in torch.randperm(len(split.y), generator=gen).split(batch):
            yield Split(split.x[rows], split.y[rows])


def sweep(split: Split, batch: int) -> Iterator[Split]:
    """One ordered pass."""
    for a, b in zip(split.x.split(batch), split.y.split(batch)):
        yield Split(a, b)


def init(d: int, h: int, c: int) -> list[torch.Tensor]:
    shapes = [(d, h), (h, h), (h, c)]
    ws = []
    for a, b in shapes:
        ws += [torch.randn(a, b) * (2 / a) ** 0.5, torch.zeros(b)]
    return [w.requires_grad_() for w in ws]


def apply(params: list[torch.Tensor], x: torch.Tensor, drop: float = 0.0) -> torch.Tensor:
    layers = list(zip(params[::2], params[1::2]))
    hidden = reduce(lambda h, wb: F.dropout(F.gelu(h @ wb[0] + wb[1]), drop, training=drop > 0), layers[:-1], x)
    w, b = layers[-1]
    return hidden @ w + b


def update(params, opt, batch: Split) -> float:
    opt.zero_grad(set_to_none=True)
    loss = F.cross_entropy(apply(params, batch.x, drop=0.15), batch.y)
    loss.backward()
    opt.step()
    return loss.item()


@torch.inference_mode()
def score(params, batches: Callable[[], Iterator[Split]]) -> float:
    hits = [(int((apply(params, b.x).argmax(-1) == b.y).sum()), len(b.y)) for b in batches()]
    return sum(h for h, _ in hits) / sum(n for _, n in hits)


def main():
    torch.manual_seed(SEED)
    splits = get_splits(SEED)
    with_data = lambda f, **kw: partial(f, splits["fit"], **kw)
    fit_stream = with_data(stream, batch=32, gen=torch.Generator().manual_seed(SEED))
    dev_sweep = with_data(sweep, batch=128)

    params = init(splits["fit"].x.shape[1], WIDTH, 2)
    opt = torch.optim.AdamW(params, lr=2e-3, weight_decay=1e-2)
    batches = fit_stream()
    for step in range(1, STEPS + 1):
        loss = update(params, opt, next(batches))
        if step % EVERY == 0:
            print(f"{step:4d}  loss {loss:.4f}  dev acc {score(params, dev_sweep):.4f}")


if __name__ == "__main__":
    main()
