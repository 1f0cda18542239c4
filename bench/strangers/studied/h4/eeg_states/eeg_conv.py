"""Sleep stage from short multi-channel EEG pieces of different length."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CHANNELS, LONGEST = 4, 60
STAGE_HZ = {0: 2.0, 1: 6.0, 2: 11.0}


class EEGPieces(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.pieces, self.stages = [], []
        for _ in range(n):
            stage = int(rng.integers(3))
            length = int(rng.integers(40, LONGEST + 1))
            t = np.arange(length) / 50.0
            phase = rng.uniform(0, 2 * np.pi, CHANNELS)
            wave = np.sin(2 * np.pi * STAGE_HZ[stage] * t[:, None] + phase) + 0.5 * rng.normal(size=(length, CHANNELS))
            self.pieces.append(wave.astype(np.float32))
            self.stages.append(stage)

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, i):
        return self.pieces[i], self.stages[i]


class PadTo:
    """Collates pieces into (batch, LONGEST, CHANNELS) with one scratch array instead of an allocation per piece."""

    def __init__(self, longest, channels):
        self.scratch = np.zeros((longest, channels), dtype=np.float32)

    def pad(self, piece):
        self.scratch.fill(0.0)
        self.scratch[:len(piece)] = piece
        return torch.from_numpy(self.scratch)

    def __call__(self, batch):
        padded = [self.pad(piece) for piece, _ in batch]
        stages = torch.tensor([stage for _, stage in batch])
        return torch.stack(padded), stages


class StageNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.front = nn.Conv1d(CHANNELS, width, 9, padding=4)
        self.mid = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Linear(width, len(STAGE_HZ))

    def forward(self, x):
        h = torch.relu(self.front(x.transpose(1, 2)))
        h = torch.relu(self.mid(h))
        return self.out(h.mean(-1))


def run(model, loader, criterion, optimizer=None):
    total, correct, count = 0.0, 0, 0
    for x, stage in loader:
        logits = model(x)
        loss = criterion(logits, stage)
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(stage)
        correct += (logits.argmax(1) == stage).sum().item()
        count += len(stage)
    return total / count, correct / count


def main():
    torch.manual_seed(6)
    pad = PadTo(LONGEST, CHANNELS)
    train = DataLoader(EEGPieces(600, 1), batch_size=24, shuffle=True, collate_fn=pad)
    valid = DataLoader(EEGPieces(150, 2), batch_size=1, collate_fn=pad)
    model = StageNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        tr = run(model, train, criterion, optimizer)
        model.eval()
        with torch.no_grad():
            va = run(model, valid, criterion)
        print("epoch %d: train loss %.3f acc %.3f | valid loss %.3f acc %.3f" % (epoch, *tr, *va))


if __name__ == "__main__":
    main()
