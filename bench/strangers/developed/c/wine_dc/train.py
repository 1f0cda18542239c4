from dataclasses import dataclass, field
import numpy as np
import torch
from torch import nn, Tensor
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


@dataclass
class OptimSpec:
    lr: float = 5e-3
    weight_decay: float = 1e-4
    epochs: int = 30
    batch: int = 32


@dataclass(eq=False)
class ResidualMLP(nn.Module):
    n_in: int
    n_out: int
    width: int = 48
    depth: int = 2
    p_drop: float = 0.1
    optim: OptimSpec = field(default_factory=OptimSpec)

    def __post_init__(self):
        self.inp = nn.Linear(self.n_in, self.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(self.width),
                nn.Linear(self.width, self.width),
                nn.SiLU(),
                nn.Dropout(self.p_drop),
            )
            for _ in range(self.depth)
        )
        self.out = nn.Linear(self.width, self.n_out)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.inp(x))
        for b in self.blocks:
            h = h + b(h)
        return self.out(h)


def load(seed: int = 0):
    X, y = load_wine(return_X_y=True)
    Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    sc = StandardScaler().fit(Xtr)
    f = lambda a: torch.as_tensor(sc.transform(a), dtype=torch.float32)
    return f(Xtr), torch.as_tensor(ytr), f(Xte), torch.as_tensor(yte)


def minibatches(X: Tensor, y: Tensor, size: int, gen: torch.Generator):
    for idx in torch.randperm(len(X), generator=gen).split(size):
        yield X[idx], y[idx]


def fit(net: ResidualMLP, X: Tensor, y: Tensor, gen: torch.Generator) -> None:
    spec = net.optim
    opt = torch.optim.AdamW(net.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)
    net.train()
    for ep in range(spec.epochs):
        tot = 0.0
        for xb, yb in minibatches(X, y, spec.batch, gen):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(xb), yb)
            loss.backward()
            opt.step()
            tot += loss.item() * len(xb)
        if ep % 10 == 9:
            print(f"{ep + 1:3d} {tot / len(X):.4f}")


@torch.no_grad()
def accuracy(net: nn.Module, X: Tensor, y: Tensor) -> float:
    net.eval()
    return (net(X).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    np.random.seed(0)
    torch.manual_seed(0)
    Xtr, ytr, Xte, yte = load()
    net = ResidualMLP(n_in=Xtr.shape[1], n_out=int(ytr.max()) + 1)
    fit(net, Xtr, ytr, torch.Generator().manual_seed(1))
    print("test accuracy", accuracy(net, Xte, yte))
