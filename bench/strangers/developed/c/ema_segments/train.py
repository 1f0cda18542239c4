"""Customer segments from spending profiles, with an exponential moving average of the weights for evaluation."""
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Settings:
    seed: int = 77
    rows: int = 2000
    columns: int = 20
    segments: int = 5
    hidden: int = 64
    lr: float = 3e-3
    ema_decay: float = 0.98
    epochs: int = 5


@contextmanager
def evaluating(*modules):
    for m in modules:
        m.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for m in modules:
            m.train()


def profiles(s: Settings):
    x, y = make_classification(
        s.rows, s.columns, n_informative=10, n_classes=s.segments, class_sep=1.5, random_state=s.seed)
    xt, xv, yt, yv = train_test_split(x, y, test_size=0.2, random_state=s.seed, stratify=y)
    mean, std = xt.mean(0), xt.std(0)
    pack = lambda a, b: TensorDataset(torch.tensor((a - mean) / std, dtype=torch.float32), torch.tensor(b))
    return pack(xt, yt), pack(xv, yv)


def accuracy(net, data):
    x, y = data.tensors
    return (net(x).argmax(1) == y).float().mean().item()


def main(s=Settings()):
    print(asdict(s))
    torch.manual_seed(s.seed)
    train, valid = profiles(s)
    net = nn.Sequential(
        nn.Linear(s.columns, s.hidden), nn.LayerNorm(s.hidden), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(s.hidden, s.hidden), nn.ReLU(),
        nn.Linear(s.hidden, s.segments),
    )
    ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(s.ema_decay))
    optimizer = torch.optim.RAdam(net.parameters(), lr=s.lr)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(s.epochs):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            criterion(net(x), y).backward()
            optimizer.step()
            ema.update_parameters(net.parameters())
        with evaluating(net, ema):
            print(f"epoch {epoch}: raw {accuracy(net, valid):.4f}  averaged {accuracy(ema, valid):.4f}")


if __name__ == "__main__":
    main()
