"""Next-sample forecasting on long ECG-like recordings, truncated BPTT over consecutive windows."""
import math
from typing import Dict, Optional

import torch
from torch import nn

WINDOW, STREAMS = 50, 8


def recordings(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length).float()
    rate = 0.15 + 0.1 * torch.rand(n, 1, generator=g)
    phase = rate * t + 2 * math.pi * torch.rand(n, 1, generator=g)
    beat = torch.exp(12 * (torch.cos(phase) - 1)) - 0.3 * torch.exp(12 * (torch.cos(phase - 0.6) - 1))
    return (beat + 0.02 * torch.randn(n, length, generator=g)).unsqueeze(-1)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.cell = nn.LSTM(1, hidden, batch_first=True)
        self.read = nn.Linear(hidden, 1)
        self.carry: Optional[Dict[str, torch.Tensor]] = None

    def forget(self):
        self.carry = None

    def forward(self, x):
        state = None if self.carry is None else (self.carry["h"], self.carry["c"])
        out, (h, c) = self.cell(x, state)
        self.carry = {"h": h.detach(), "c": c}
        return x + self.read(out)


def windows(signal):
    """Yield (input, target) pieces of WINDOW samples, one after the other along time."""
    for start in range(0, signal.size(1) - WINDOW, WINDOW):
        yield signal[:, start:start + WINDOW], signal[:, start + 1:start + WINDOW + 1]


def evaluate(model, signal):
    model.eval()
    model.forget()
    with torch.no_grad():
        errors = [nn.functional.mse_loss(model(x), y).item() for x, y in windows(signal)]
    model.forget()
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(4)
    train, val = recordings(4 * STREAMS, 1001, 1), recordings(STREAMS, 1001, 2)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        model.train()
        total = pieces = 0
        for group in torch.randperm(len(train)).split(STREAMS):
            model.forget()
            for x, y in windows(train[group]):
                loss = nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                total += loss.item()
                pieces += 1
        print(f"epoch {epoch} train {total / pieces:.5f} val {evaluate(model, val):.5f}")


if __name__ == "__main__":
    main()
