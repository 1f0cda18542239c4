import argparse
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader

from hum_data import HumRecordings
from prepare import prepare


def epoch_pass(net, loader, loss_fn, opt=None):
    net.train(opt is not None)
    total, right, seen = 0.0, 0, 0
    for spec, state in loader:
        with torch.set_grad_enabled(opt is not None):
            out = net(spec)
            loss = loss_fn(out, state)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item() * len(state)
        right += (out.argmax(1) == state).sum().item()
        seen += len(state)
    return total / seen, right / seen


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as root:
        prepare(f"{root}/train", 400, seed=1)
        prepare(f"{root}/valid", 150, seed=2)
        train = DataLoader(HumRecordings(f"{root}/train"), batch_size=25, shuffle=True)
        valid = DataLoader(HumRecordings(f"{root}/valid"), batch_size=50)
        net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 3))
        opt = torch.optim.Adam(net.parameters(), lr=args.lr)
        for ep in range(args.epochs):
            tl, ta = epoch_pass(net, train, nn.CrossEntropyLoss(), opt)
            vl, va = epoch_pass(net, valid, nn.CrossEntropyLoss())
            print(f"{ep}: train {tl:.3f} ({ta:.2%})  valid {vl:.3f} ({va:.2%})")


if __name__ == "__main__":
    main()
