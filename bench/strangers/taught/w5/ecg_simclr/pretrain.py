import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def load_windows(n=512, length=250):
    """Stand-in for the hospital export: (n, length) float32, one heartbeat window a row."""
    rs = np.random.RandomState(7)
    t = np.linspace(0, 1, length)
    width = rs.uniform(0.01, 0.05, size=(n, 1))
    centre = rs.uniform(0.3, 0.7, size=(n, 1))
    beat = np.exp(-((t - centre) ** 2) / (2 * width ** 2))
    wander = 0.2 * np.sin(2 * np.pi * rs.uniform(0.2, 1, size=(n, 1)) * t)
    return (beat + wander + 0.02 * rs.randn(n, length)).astype(np.float32)


class TwoViews(Dataset):
    def __init__(self, windows, seed=0):
        self.windows = windows
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.windows)

    def _augment(self, x):
        x = np.roll(x, self.rng.integers(-25, 26))
        x = x * self.rng.uniform(0.7, 1.3)
        x = x + self.rng.normal(0, 0.05, size=x.shape)
        start = self.rng.integers(0, len(x) - 40)
        x[start:start + 40] = 0.0
        return torch.from_numpy(x.astype(np.float32))

    def __getitem__(self, i):
        w = self.windows[i]
        return self._augment(w), self._augment(w)


class Encoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, dim, 7, stride=2, padding=3), nn.BatchNorm1d(dim), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.proj = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 32))

    def forward(self, x):
        return F.normalize(self.proj(self.conv(x.unsqueeze(1))), dim=1)


def nt_xent(z1, z2, tau=0.2):
    n = z1.size(0)
    z = torch.cat([z1, z2])
    sim = z @ z.t() / tau
    sim.fill_diagonal_(-1e4)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)


def main():
    torch.manual_seed(0)
    ds = TwoViews(load_windows())
    loader = DataLoader(ds, batch_size=64, shuffle=True, num_workers=2, drop_last=True)
    net = Encoder()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        tot = 0.0
        for a, b in loader:
            loss = nt_xent(net(a), net(b))
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        print(f"[{epoch}] nt-xent {tot / len(loader):.3f}")
    torch.save(net.conv.state_dict(), "/tmp/ecg_encoder.pt")


if __name__ == "__main__":
    main()
