"""Bird call recogniser on variable length mel features."""
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

N_MELS = 20
SPECIES = ["wren", "robin", "tit", "finch"]
random.seed(0)
torch.manual_seed(0)


class Calls(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            k = int(rng.integers(len(SPECIES)))
            frames = int(rng.integers(30, 70))
            mel = rng.normal(0, 0.7, size=(N_MELS, frames)) + 0.5 * k - 0.75  # louder species, louder mel
            mel[3 * k: 3 * k + 4] += 0.3
            self.items.append((torch.tensor(mel, dtype=torch.float32), k))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class FrameBudgetSampler(Sampler):
    """Groups clips of similar length; a batch may hold at most `budget` mel frames after padding."""

    def __init__(self, data, budget, shuffle=True):
        self.sizes = [mel.numel() for mel, _ in data.items]
        self.budget, self.shuffle = budget, shuffle
        self.batches = self._pack()

    def _pack(self):
        order = sorted(range(len(self.sizes)), key=self.sizes.__getitem__)
        batches, current = [], []
        for i in order:
            if current and self.sizes[i] * (len(current) + 1) > self.budget:
                batches.append(current)
                current = []
            current.append(i)
        batches.append(current)
        return batches

    def __iter__(self):
        order = list(range(len(self.batches)))
        if self.shuffle:
            random.shuffle(order)
        for b in order:
            yield self.batches[b]

    def __len__(self):
        return len(self.batches)


def collate(batch):
    mels, ks = zip(*batch)
    padded = pad_sequence([m.t() for m in mels], batch_first=True, padding_value=0.0).transpose(1, 2)
    return padded, torch.tensor(ks)


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(N_MELS, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU())
        self.fc = nn.Linear(32, len(SPECIES))

    def forward(self, mel):
        return self.fc(self.layers(mel).mean(dim=-1))


train_set, valid_set = Calls(320, 1), Calls(200, 2)
train_loader = DataLoader(train_set, batch_sampler=FrameBudgetSampler(train_set, budget=1600), collate_fn=collate)
valid_loader = DataLoader(valid_set, batch_size=20, collate_fn=collate)
model = CallNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
criterion = nn.CrossEntropyLoss()

for epoch in range(5):
    model.train()
    tally = []
    for mel, k in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(mel), k)
        loss.backward()
        optimizer.step()
        tally.append(loss.item())
    model.eval()
    hit, vloss = 0, 0.0
    with torch.no_grad():
        for mel, k in valid_loader:
            out = model(mel)
            vloss += criterion(out, k).item() * len(k)
            hit += (out.argmax(1) == k).sum().item()
    print(f"epoch {epoch}  train loss {np.mean(tally):.3f}  valid loss {vloss / len(valid_set):.3f}  "
          f"valid acc {hit / len(valid_set):.3f}")
