from dataclasses import dataclass, field

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import QuantileTransformer
from torch import nn

from sam import SAM


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...] = (64, 64)
    rho: float = 0.05
    lr: float = 1e-3
    weight_decay: float = 1e-4
    batch_size: int = 64
    epochs: int = 8
    seed: int = 17
    quantile: dict = field(default_factory=lambda: {"n_quantiles": 100, "output_distribution": "normal"})


def mlp(n_in: int, widths: tuple[int, ...], n_out: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for w in widths:
        layers += [nn.Linear(n_in, w), nn.LayerNorm(w), nn.ReLU()]
        n_in = w
    return nn.Sequential(*layers, nn.Linear(n_in, n_out))


def run(cfg: Config) -> float:
    torch.manual_seed(cfg.seed)
    X, y = make_classification(1500, 20, n_informative=8, n_classes=3, class_sep=1.5, random_state=cfg.seed)
    tr, va = next(StratifiedShuffleSplit(1, test_size=0.25, random_state=cfg.seed).split(X, y))
    qt = QuantileTransformer(random_state=cfg.seed, **cfg.quantile).fit(X[tr])
    to = lambda i: (torch.tensor(qt.transform(X[i]), dtype=torch.float32), torch.tensor(y[i]))
    (xt, yt), (xv, yv) = to(tr), to(va)

    net = mlp(20, cfg.widths, 3)
    sam = SAM(torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay), cfg.rho)
    criterion = nn.CrossEntropyLoss()
    acc = 0.0
    for epoch in range(cfg.epochs):
        net.train()
        seen = 0.0
        for idx in torch.randperm(len(xt)).split(cfg.batch_size):
            xb, yb = xt[idx], yt[idx]
            seen += sam.step(lambda: criterion(net(xb), yb)) * len(idx)
        net.eval()
        with torch.no_grad():
            acc = (net(xv).argmax(1) == yv).float().mean().item()
        print(f"{epoch}: loss={seen / len(xt):.4f} val_acc={acc:.4f}")
    return acc


if __name__ == "__main__":
    run(Config())
