import functools
import resource

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CLASSES, MELS, FRAMES = 4, 32, 48


@functools.lru_cache(maxsize=None)
def render(index, seed):
    """Load clip `index` and apply SpecAugment-like masking."""
    clean = np.random.default_rng(index)
    label = index % CLASSES
    spec = 0.4 * clean.normal(size=(MELS, FRAMES))
    start = clean.integers(0, FRAMES - 24)
    rows = (8 + 4 * label + np.round(3 * np.sin(np.arange(24) / (2.0 + label)))).astype(int)
    spec[rows, start + np.arange(24)] += 3.0
    if seed is not None:
        rng = np.random.default_rng((index, seed))
        f, t = rng.integers(0, MELS - 4), rng.integers(0, FRAMES - 6)
        spec[f:f + 4] = 0.0
        spec[:, t:t + 6] = 0.0
        spec = np.roll(spec, rng.integers(-3, 4), axis=1)
    return torch.tensor(spec, dtype=torch.float32)


class Keywords(Dataset):
    def __init__(self, indices, augment):
        self.indices, self.augment = list(indices), augment
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, i):
        idx = self.indices[i]
        return render(idx, self.epoch if self.augment else None).unsqueeze(0), idx % CLASSES


class KwsNet(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, ch, (5, 5), stride=2, padding=2), nn.BatchNorm2d(ch), nn.ReLU(),
            nn.Conv2d(ch, ch, 3, stride=2, padding=1), nn.BatchNorm2d(ch), nn.ReLU(),
        )
        self.fc = nn.Linear(ch * (MELS // 4), CLASSES)

    def forward(self, x):
        return self.fc(self.conv(x).amax(-1).flatten(1))


def accuracy(net, loader):
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


torch.manual_seed(0)
train_set, valid_set = Keywords(range(0, 480), True), Keywords(range(1000, 1160), False)
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=80)
net = KwsNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(6):
    train_set.set_epoch(epoch)
    net.train()
    for x, y in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y, label_smoothing=0.05)
        loss.backward()
        opt.step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"epoch {epoch}  loss {loss.item():.3f}  valid {accuracy(net, valid_loader):.3f}  peak {peak:.0f} MB")
