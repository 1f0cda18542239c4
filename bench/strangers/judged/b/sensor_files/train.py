import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from dataset import GestureFolder
from record import GESTURES, record_session


def conv_net(hidden):
    return nn.Sequential(
        nn.Conv1d(3, hidden, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(hidden, hidden, 5, padding=2), nn.ReLU(),
        nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(hidden, len(GESTURES)))


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    good = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return good / len(loader.dataset)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", type=Path, default=None)
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--hidden", type=int, default=24)
    ap.add_argument("--seed", type=int, default=1)
    opt = ap.parse_args()
    torch.manual_seed(opt.seed)

    with tempfile.TemporaryDirectory() as tmp:
        root = opt.root or Path(tmp)
        if not (root / "day1").exists():
            record_session(root / "day1", 300, seed=opt.seed)
            record_session(root / "day2", 120, seed=opt.seed + 100)
        day1 = GestureFolder(root / "day1")
        day2 = GestureFolder(root / "day2", scale=day1.scale)
        fit = DataLoader(day1, batch_size=30, shuffle=True)
        held = DataLoader(day2, batch_size=60)

        net = conv_net(opt.hidden)
        solver = optim.Adam(net.parameters(), lr=3e-3)
        ce = nn.CrossEntropyLoss()
        for e in range(1, opt.epochs + 1):
            net.train()
            s = 0.0
            for x, y in fit:
                solver.zero_grad()
                l = ce(net(x), y)
                l.backward()
                solver.step()
                s += l.item() * len(y)
            print(f"{e:02d}: train loss {s / len(day1):.3f}   day-2 accuracy {accuracy(net, held):.3f}")
