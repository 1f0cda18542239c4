from dataclasses import dataclass

import torch
from torch import nn

from loops import PhaseRunner
from series import loaders


@dataclass
class Config:
    history: int = 36
    horizon: int = 6
    hidden: int = 24
    lr: float = 5e-3
    epochs: int = 4
    seed: int = 0


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gru = nn.GRU(1, cfg.hidden, batch_first=True)
        self.proj = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, x):
        _, h = self.gru(x)
        return self.proj(h[-1])


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    data = loaders(cfg.history, cfg.horizon)
    model = Forecaster(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    runner = PhaseRunner(model, nn.SmoothL1Loss(), optimizer)
    best = float("inf")
    for epoch in range(cfg.epochs):
        scores = {phase: runner.run(phase, loader) for phase, loader in data.items()}
        best = min(best, scores["val"])
        print(f"epoch {epoch}: " + "  ".join(f"{k} {v:.4f}" for k, v in scores.items()))
    print(f"best validation loss {best:.4f}")


if __name__ == "__main__":
    main()
