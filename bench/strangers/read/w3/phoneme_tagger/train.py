import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from timing import Stopwatch

N_PHON, N_MEL, T = 20, 40, 60


class Tagger(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(N_MEL, dim, 5, padding=2), nn.GELU(),
            nn.Conv1d(dim, dim, 5, padding=2), nn.GELU(), nn.Dropout(0.1),
            nn.Conv1d(dim, N_PHON, 1),
        )

    def forward(self, mel):
        return self.net(mel)


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    codebook = torch.randn(N_PHON, N_MEL, generator=torch.Generator().manual_seed(0))
    y = torch.randint(N_PHON, (n, T // 5), generator=g).repeat_interleave(5, dim=1)
    x = codebook[y].transpose(1, 2) + 1.2 * torch.randn(n, N_MEL, T, generator=g)
    return TensorDataset(x, y)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--report-times", action="store_true")
    a = ap.parse_args()
    torch.manual_seed(8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pin = device.type == "cuda"
    train = DataLoader(corpus(400, 1), a.batch, shuffle=True, pin_memory=pin)
    valid = DataLoader(corpus(100, 2), a.batch, pin_memory=pin)
    model = Tagger().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr)
    watch = Stopwatch(device, a.report_times)

    for epoch in range(a.epochs):
        model.train()
        running = torch.zeros((), device=device)
        for mel, phon in train:
            with watch("copy"):
                mel, phon = mel.to(device, non_blocking=True), phon.to(device, non_blocking=True)
            with watch("forward"):
                loss = F.cross_entropy(model(mel), phon)
            with watch("backward"):
                opt.zero_grad(set_to_none=True)
                loss.backward()
            with watch("update"):
                opt.step()
            running += loss.detach()
        model.eval()
        right = torch.zeros((), device=device)
        with torch.no_grad():
            for mel, phon in valid:
                mel, phon = mel.to(device, non_blocking=True), phon.to(device, non_blocking=True)
                right += (model(mel).argmax(1) == phon).sum()
        print(f"{epoch}: loss {running.item() / len(train):.4f} frame acc {right.item() / (100 * T):.4f}")
        watch.summary()


if __name__ == "__main__":
    main()
