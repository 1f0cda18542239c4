"""Keyword spotting on synthetic tones, with waveform augmentation in the data loader."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE, LENGTH, KEYWORDS = 4000, 1600, 6


class Compose:
    def __init__(self, *ops):
        self.ops = ops

    def __call__(self, wave):
        for op in self.ops:
            wave = op(wave)
        return wave


class RandomGain:
    def __init__(self, low, high, seed):
        self.low, self.high = low, high
        self.rs = np.random.RandomState(seed)

    def __call__(self, wave):
        return wave * self.rs.uniform(self.low, self.high)


class RandomShift:
    def __init__(self, most, seed):
        self.most = most
        self.rs = np.random.RandomState(seed)

    def __call__(self, wave):
        return np.roll(wave, self.rs.randint(-self.most, self.most + 1))


class BackgroundNoise:
    def __init__(self, level, seed):
        self.level = level
        self.rs = np.random.RandomState(seed)

    def __call__(self, wave):
        return wave + self.level * self.rs.randn(len(wave))


class Keywords(Dataset):
    def __init__(self, n, seed, transform=None):
        rs = np.random.RandomState(seed)
        self.labels = rs.randint(0, KEYWORDS, n)
        t = np.arange(LENGTH) / RATE
        base = 200 * 1.35 ** self.labels * rs.uniform(0.95, 1.05, n)
        self.waves = np.sin(2 * np.pi * base[:, None] * t) * np.exp(-3 * t) + 0.3 * rs.randn(n, LENGTH)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.waves[i]
        if self.transform is not None:
            wave = self.transform(wave)
        spec = np.abs(np.fft.rfft(wave.reshape(10, 160) * np.hanning(160), axis=1))
        return torch.tensor(np.log1p(spec), dtype=torch.float32), int(self.labels[i])


def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(810, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, KEYWORDS))


def main(seed=0):
    torch.manual_seed(seed)
    augment = Compose(RandomGain(0.5, 1.5, seed), RandomShift(200, seed + 1), BackgroundNoise(0.4, seed + 2))
    train = DataLoader(Keywords(800, seed=1, transform=augment), batch_size=40, shuffle=True, num_workers=2)
    test = DataLoader(Keywords(300, seed=2), batch_size=100)
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(5):
        net.train()
        seen = 0.0
        for spec, label in train:
            loss = nn.functional.cross_entropy(net(spec), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += loss.item()
        net.eval()
        with torch.no_grad():
            hits = sum((net(s).argmax(1) == l).sum().item() for s, l in test)
        print(f"epoch {epoch}  loss {seen / len(train):.3f}  test acc {hits / 300:.3f}")


if __name__ == "__main__":
    main()
