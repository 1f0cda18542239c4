from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader

from clips import Clips
from frontend import Normalizer, band_energies


@dataclass
class Config:
    n_fft: int = 128
    hop: int = 64
    bands: int = 24
    train_clips: int = 400
    val_clips: int = 120
    batch: int = 32
    epochs: int = 5
    lr: float = 3e-3
    seed: int = 5


class KeywordNet(nn.Module):
    def __init__(self, bands, classes=4):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(bands, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU())
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        h = self.conv(x)
        return self.fc(torch.cat([h.mean(-1), h.amax(-1)], 1))


def build_data(cfg):
    front = partial(band_energies, n_fft=cfg.n_fft, hop=cfg.hop, bands=cfg.bands)
    train = Clips(cfg.train_clips, cfg.seed, partial(front, compress=True))
    train.norm = Normalizer(train.all_features())
    val = Clips(cfg.val_clips, cfg.seed + 1, front, norm=train.norm)
    return (DataLoader(train, cfg.batch, shuffle=True), DataLoader(val, 64))


def validate(net, loader, criterion):
    net.eval()
    loss = hits = n = 0
    with torch.no_grad():
        for x, y in loader:
            z = net(x)
            loss += criterion(z, y).item() * len(y)
            hits += (z.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    train, val = build_data(cfg)
    net = KeywordNet(cfg.bands)
    optim = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        net.train()
        tot = n = 0
        for x, y in train:
            loss = criterion(net(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            tot, n = tot + loss.item() * len(y), n + len(y)
        vl, va = validate(net, val, criterion)
        print(f"{epoch=} train={tot / n:.3f} val={vl:.3f} val_acc={va:.3f}")


if __name__ == "__main__":
    main()
