import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class NetzKonfig:
    laenge: int = 187
    kanaele: tuple = (1, 16, 32, 48)
    kern: int = 5
    schritt: int = 2
    klassen: int = 4
    ausfall: float = 0.1


def faltungslaenge(n: int, kern: int, schritt: int, rand: int) -> int:
    return math.ceil((n + 2 * rand - kern) / schritt) + 1


class HerzschlagNetz(nn.Module):
    def __init__(self, k: NetzKonfig):
        super().__init__()
        rand = k.kern // 2
        bloecke = []
        laenge = k.laenge
        for ein, aus in zip(k.kanaele[:-1], k.kanaele[1:]):
            bloecke += [
                nn.Conv1d(ein, aus, k.kern, stride=k.schritt, padding=rand),
                nn.BatchNorm1d(aus),
                nn.ReLU(),
            ]
            laenge = faltungslaenge(laenge, k.kern, k.schritt, rand)
        self.merkmale = nn.Sequential(*bloecke)
        self.kopf = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(k.ausfall),
            nn.Linear(k.kanaele[-1] * laenge, 64),
            nn.ReLU(),
            nn.Linear(64, k.klassen),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.kopf(self.merkmale(x))
