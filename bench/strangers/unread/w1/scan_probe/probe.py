"""Linear probe on a self-supervised encoder (denoising pretext task)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(),
                                  nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        self.width = width

    def forward(self, x):
        return self.body(x)


class Denoiser(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = nn.Linear(encoder.width, 64)

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Probe(nn.Module):
    """The encoder is a fixed feature extractor: no gradients, running statistics untouched."""

    def __init__(self, encoder, n_classes):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.head = nn.Linear(encoder.width, n_classes)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        return self.head(z)


def main():
    torch.manual_seed(0)
    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    order = torch.randperm(len(y))
    x, y = x[order], y[order]
    x_tr, y_tr, x_va, y_va = x[:1400], y[:1400], x[1400:], y[1400:]

    denoiser = Denoiser(Encoder())
    opt = torch.optim.Adam(denoiser.parameters(), lr=2e-3)
    unlabelled = DataLoader(x_tr, batch_size=100, shuffle=True)
    for epoch in range(10):
        denoiser.train()
        for xb in unlabelled:
            loss = F.mse_loss(denoiser(xb + 0.3 * torch.randn_like(xb)), xb)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretext loss {loss.item():.4f}")

    probe = Probe(denoiser.encoder, 10)
    opt = torch.optim.Adam([p for p in probe.parameters() if p.requires_grad], lr=1e-2)
    labelled = DataLoader(TensorDataset(x_tr, y_tr), batch_size=100, shuffle=True)
    for epoch in range(8):
        probe.train()
        for xb, yb in labelled:
            loss = F.cross_entropy(probe(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        probe.eval()
        with torch.no_grad():
            acc = (probe(x_va).argmax(1) == y_va).float().mean().item()
        print(f"probe {epoch} loss {loss.item():.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
