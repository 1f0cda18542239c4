"""Forecast the next value of a machine vibration signal. Restart with the same command after a preemption."""
import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer


class TCN(nn.Module):
    def __init__(self, ch=16, levels=4):
        super().__init__()
        self.inp = nn.Conv1d(1, ch, 1)
        self.convs = nn.ModuleList(nn.Conv1d(ch, ch, 3, dilation=2 ** k) for k in range(levels))
        self.drop = nn.Dropout(0.05)
        self.out = nn.Linear(ch, 1)

    def forward(self, x):
        h = self.inp(x[:, None])
        for k, conv in enumerate(self.convs):
            padded = nn.functional.pad(h, (2 * 2 ** k, 0))
            h = h + self.drop(torch.relu(conv(padded)))
        return self.out(h[:, :, -1]).squeeze(1)


def signal(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(n) / 10
    return torch.sin(t) + 0.5 * torch.sin(2.7 * t + 1) + 0.1 * torch.randn(n, generator=g)


def windows(sig, width=40):
    w = sig.unfold(0, width + 1, 1)
    return TensorDataset(w[:, :-1].contiguous(), w[:, -1].contiguous())


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ckpt", default=None)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--stop-after", type=int, default=None)
    a = p.parse_args()
    torch.manual_seed(31)
    sig = signal(1400, 31)
    tr, va = sig[:1000], sig[1000:]  # the last part of the recording is held out
    mu, sd = tr.mean(), tr.std()
    train = DataLoader(windows((tr - mu) / sd), 64, shuffle=True, generator=torch.Generator())
    valid = DataLoader(windows((va - mu) / sd), 256)
    path = a.ckpt or str(Path(tempfile.mkdtemp()) / "tcn.pt")
    cfg = dict(lr=3e-3, epochs=a.epochs, seed=31, ckpt=path, stop_after=a.stop_after)
    Trainer(TCN(), cfg).fit(train, valid)
