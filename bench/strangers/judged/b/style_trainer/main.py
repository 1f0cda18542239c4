"""Denoise 1-d profiles. `python main.py --folder runs/a` continues where the last call stopped."""
import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import Engine


def profiles(n, seed, length=48):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, length)
    f, p = 1 + 4 * torch.rand(n, 1, generator=g), 6.28 * torch.rand(n, 1, generator=g)
    clean = torch.sin(6.28 * f * t + p)[:, None]
    return TensorDataset(clean + 0.4 * torch.randn(clean.shape, generator=g), clean)


class Denoiser(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.f = nn.Sequential(nn.Conv1d(1, c, 7, padding=3), nn.ReLU(), nn.Dropout(0.05),
                               nn.Conv1d(c, c, 7, padding=3), nn.ReLU(), nn.Conv1d(c, 1, 7, padding=3))

    def forward(self, x):
        return x + self.f(x)


def make_engine(folder, epochs):
    torch.manual_seed(0)
    return Engine(Denoiser(), nn.MSELoss(), DataLoader(profiles(320, 1), 32, shuffle=True),
                  DataLoader(profiles(80, 2), 80), lr=4e-3, epochs=epochs, folder=folder)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", type=Path)
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--stop-after", type=int, default=4, help="walltime guard: leave after this many epochs")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        folder = a.folder or Path(tmp)
        folder.mkdir(parents=True, exist_ok=True)
        first = make_engine(folder, a.epochs)
        first.resume()
        first.run(stop_after=a.stop_after)
        second = make_engine(folder, a.epochs)
        second.resume()
        second.run()
