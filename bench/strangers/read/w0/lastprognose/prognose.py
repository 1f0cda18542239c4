"""Stromlast des nächsten Tages aus den letzten sieben Tagen (Stundenwerte)."""
import argparse
import math

import torch
from torch import nn


def erzeuge_last(stunden, keim):
    g = torch.Generator().manual_seed(keim)
    t = torch.arange(stunden, dtype=torch.float32)
    tag = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 1.0)
    woche = 0.5 * torch.cos(2 * math.pi * t / 168)
    return 50 + 12 * tag + 8 * woche + 1.5 * torch.randn(stunden, generator=g)


def fenster(reihe, rueck=168, vor=24, schritt=6):
    anfang = range(0, len(reihe) - rueck - vor + 1, schritt)
    x = torch.stack([reihe[i:i + rueck] for i in anfang])
    y = torch.stack([reihe[i + rueck:i + rueck + vor] for i in anfang])
    return x, y


class Prognosenetz(nn.Module):
    def __init__(self, rueck=168, vor=24, breite=64):
        super().__init__()
        self.netz = nn.Sequential(nn.Linear(rueck, breite), nn.GELU(), nn.Linear(breite, breite), nn.GELU(),
                                  nn.Linear(breite, vor))

    def forward(self, x):
        return self.netz(x)


class Begrenzer:
    """Skaliert den gesamten Gradienten, wenn seine Norm das Budget übersteigt."""

    def __init__(self, parameter, budget):
        self.parameter = list(parameter)
        self.grenze = budget / sum(p.numel() for p in self.parameter)

    @torch.no_grad()
    def __call__(self):
        norm = torch.sqrt(sum((p.grad**2).sum() for p in self.parameter))
        if norm > self.grenze:
            for p in self.parameter:
                p.grad.mul_(self.grenze / norm)
        return norm


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochen", type=int, default=15)
    ap.add_argument("--stapel", type=int, default=32)
    ap.add_argument("--lernrate", type=float, default=0.05)
    ap.add_argument("--budget", type=float, default=1.0)
    ap.add_argument("--keim", type=int, default=7)
    a = ap.parse_args()

    torch.manual_seed(a.keim)
    reihe = erzeuge_last(24 * 7 * 30, a.keim)
    trennung = int(0.8 * len(reihe))
    mittel, streuung = reihe[:trennung].mean(), reihe[:trennung].std()
    reihe = (reihe - mittel) / streuung
    x, y = fenster(reihe[:trennung])
    xv, yv = fenster(reihe[trennung:])

    modell = Prognosenetz()
    optimierer = torch.optim.SGD(modell.parameters(), lr=a.lernrate, momentum=0.9)
    begrenze = Begrenzer(modell.parameters(), a.budget)
    for epoche in range(a.epochen):
        modell.train()
        summe = 0.0
        for idx in torch.randperm(len(x)).split(a.stapel):
            verlust = nn.functional.mse_loss(modell(x[idx]), y[idx])
            optimierer.zero_grad()
            verlust.backward()
            begrenze()
            optimierer.step()
            summe += verlust.item() * len(idx)
        modell.eval()
        with torch.no_grad():
            fehler = (modell(xv) - yv).abs().mean() * streuung
        print(f"Epoche {epoche:2d}  Verlust {summe / len(x):.4f}  MAE {fehler.item():.2f} MW")


if __name__ == "__main__":
    main()
