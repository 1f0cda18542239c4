import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from features import FeatureConfig, LogSpec

SPECIES = {"wren": (1400, 300), "robin": (900, 500), "tit": (1200, -400), "owl": (300, 30)}


class Calls(Dataset):
    def __init__(self, n, cfg, seed):
        self.cfg, self.spec = cfg, LogSpec(cfg)
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100_000 + i)
        label = i % len(SPECIES)
        base, sweep = list(SPECIES.values())[label]
        t = torch.arange(self.cfg.n_samples) / self.cfg.sample_rate
        freq = base * (0.9 + 0.2 * torch.rand(1, generator=g))
        wave = torch.sin(2 * math.pi * (freq * t + 0.5 * sweep * t ** 2))
        wave = wave + torch.randn(wave.shape, generator=g)
        return self.spec(wave), label


class CallNet(nn.Module):
    """Squeeze the frequency axis step by step, then look at all frames at once."""

    def __init__(self, cfg, n_classes, channels=(32, 16)):
        super().__init__()
        blocks, c = [], cfg.n_bins
        for width in channels:
            blocks += [nn.Conv1d(c, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU()]
            c = width
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(c * cfg.n_frames, 64),
            nn.ReLU(),
            nn.Linear(64, n_classes),
        )

    def forward(self, spec):
        return self.classifier(self.blocks(spec))


def main():
    torch.manual_seed(0)
    cfg = FeatureConfig()
    train = DataLoader(Calls(320, cfg, 1), batch_size=32, shuffle=True)
    test = DataLoader(Calls(80, cfg, 2), batch_size=80)
    net = CallNet(cfg, len(SPECIES))
    print(f"input: {cfg.n_bins} bins x {cfg.n_frames} frames")
    optim = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(4):
        net.train()
        for spec, y in train:
            loss = nn.functional.cross_entropy(net(spec), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
        net.eval()
        with torch.no_grad():
            acc = sum((net(s).argmax(1) == y).sum().item() for s, y in test) / 80
        print(f"epoch {epoch} loss {loss.item():.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
