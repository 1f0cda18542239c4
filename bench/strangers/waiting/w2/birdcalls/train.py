import sys

import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader, Dataset

from model import BirdNet


class MelDataset(Dataset):
    """Precomputed log-mels; falls back on fake ones for a smoke test."""

    def __init__(self, audio, n_species, n=192, seed=0, path=None):
        g = torch.Generator().manual_seed(seed)
        if path is not None:
            blob = torch.load(path)
            self.mels, self.labels = blob["mels"], blob["labels"]
            return
        self.labels = torch.randint(0, n_species, (n,), generator=g)
        self.mels = torch.randn(n, 1, audio["n_mels"], audio["frames"], generator=g)
        for i, c in enumerate(self.labels):
            lo = 8 + 9 * int(c)
            self.mels[i, :, lo:lo + 6, 30:90] += 2.0

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.mels[i]
        return (x - x.mean()) / (x.std() + 1e-6), self.labels[i]


def main(path=None):
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    audio, tr = cfg["audio"], cfg["train"]
    torch.manual_seed(0)
    train_dl = DataLoader(MelDataset(audio, tr["species"], path=path), tr["batch_size"], shuffle=True)
    val_dl = DataLoader(MelDataset(audio, tr["species"], n=60, seed=1, path=path), 60)

    net = BirdNet(tr["species"], frames=audio["frames"])
    opt = torch.optim.Adam(net.parameters(), lr=tr["lr"])
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(tr["epochs"]):
        net.train()
        for x, y in train_dl:
            opt.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x).argmax(1) == y).float().mean().item() for x, y in val_dl) / len(val_dl)
        print(f"epoch {epoch} loss {loss.item():.3f} acc {acc:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
