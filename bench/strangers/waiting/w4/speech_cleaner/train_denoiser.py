import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from spectral import lsd

SR, LEN = 4000, 2000


class NoisyTones(Dataset):
    """harmonic tones with a decaying envelope, stands in for the studio recordings"""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.items = [self._make() for _ in range(n)]

    def _make(self):
        t = np.arange(LEN) / SR
        f0 = self.rng.uniform(90, 300)
        clean = sum(np.sin(2 * np.pi * f0 * k * t + self.rng.uniform(0, 6)) / k for k in range(1, 5))
        clean = 0.3 * clean * np.exp(-self.rng.uniform(0, 4) * t)
        noisy = clean + 0.15 * self.rng.standard_normal(LEN)
        return noisy.astype(np.float32), clean.astype(np.float32)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class WaveCleaner(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.enc = nn.Conv1d(1, ch, 16, stride=8, padding=4)
        self.mid = nn.ModuleList(nn.Conv1d(ch, ch, 3, dilation=d, padding=d) for d in (1, 2, 4, 8))
        self.dec = nn.ConvTranspose1d(ch, 1, 16, stride=8, padding=4)

    def forward(self, x):
        h = torch.relu(self.enc(x.unsqueeze(1)))
        m = h
        for c in self.mid:
            m = m + torch.relu(c(m))
        return self.dec(h * torch.sigmoid(m)).squeeze(1)


def spectral_loss(estimate, clean):
    value = lsd(estimate.detach().cpu().numpy(), clean.cpu().numpy())
    return torch.tensor(value, dtype=torch.float32, requires_grad=True)


def main():
    torch.manual_seed(0)
    train = DataLoader(NoisyTones(400, 0), batch_size=16, shuffle=True)
    test = DataLoader(NoisyTones(64, 1), batch_size=64)
    net = WaveCleaner()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)

    for epoch in range(5):
        net.train()
        for noisy, clean in train:
            optimiser.zero_grad()
            loss = spectral_loss(net(noisy), clean)
            loss.backward()
            optimiser.step()

        net.eval()
        with torch.no_grad():
            d = [lsd(net(n).numpy(), c.numpy()) for n, c in test]
        print(f"epoch {epoch}  train LSD {loss.item():.4f}  test LSD {np.mean(d):.4f}")


if __name__ == "__main__":
    main()
