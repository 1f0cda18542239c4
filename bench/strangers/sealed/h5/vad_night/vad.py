# Voice activity detection for night recordings of bats... well, of my street.
# 16 bit PCM -> frame features -> small GRU
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

FRAME, N_FRAMES = 160, 50


def street(rng):
    """One clip of PCM samples with some voiced stretches, and a label per frame."""
    voiced = np.zeros(N_FRAMES, dtype=np.int64)
    for _ in range(rng.integers(1, 4)):
        a = rng.integers(0, N_FRAMES - 8)
        voiced[a:a + rng.integers(5, 15)] = 1
    n = N_FRAMES * FRAME
    amp = np.repeat(np.where(voiced, rng.uniform(300, 2500), 30), FRAME)
    pitch = rng.uniform(100, 250)
    t = np.arange(n) / 8000
    wave = amp * np.sign(np.sin(2 * np.pi * pitch * t)) * 0.5 + amp * 0.5 * rng.standard_normal(n)
    wave += 60 * rng.standard_normal(n)
    return np.clip(wave, -32768, 32767).astype(np.int16), voiced


class Clips(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        clips = [street(rng) for _ in range(n)]
        # half the memory of float32
        self.pcm = torch.from_numpy(np.stack([c[0] for c in clips])).half()
        self.voiced = torch.from_numpy(np.stack([c[1] for c in clips]))

    def __len__(self):
        return len(self.pcm)

    def __getitem__(self, i):
        frames = self.pcm[i].view(N_FRAMES, FRAME)
        energy = (frames * frames).mean(-1)
        crossings = (frames[:, 1:].sign() != frames[:, :-1].sign()).float().mean(-1)
        peak = frames.abs().amax(-1).float()
        feats = torch.stack([torch.log1p(energy.float()), crossings, torch.log1p(peak)], dim=-1)
        return feats, self.voiced[i]


class VAD(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.gru = nn.GRU(3, 24, batch_first=True, bidirectional=True)
        self.cls = nn.Linear(48, 2)

    def forward(self, x):
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return self.cls(self.gru(x)[0])


torch.manual_seed(0)
train = DataLoader(Clips(200, 0), batch_size=20, shuffle=True)
test = DataLoader(Clips(60, 1), batch_size=60)
model = VAD()
optim = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(5):
    model.train()
    for feats, voiced in train:
        loss = nn.functional.cross_entropy(model(feats).flatten(0, 1), voiced.flatten())
        optim.zero_grad()
        loss.backward()
        optim.step()
    model.eval()
    with torch.no_grad():
        feats, voiced = next(iter(test))
        acc = (model(feats).argmax(-1) == voiced).float().mean()
    print(f"epoch {epoch}  loss {loss.item():.4f}  frame accuracy {acc.item():.3f}")
