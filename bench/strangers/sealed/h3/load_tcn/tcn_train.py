"""Day-ahead electricity load with a small temporal conv net."""
import json
import logging
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname)s] %(message)s")
LOG = logging.getLogger(__name__)
HP = {"context": 72, "horizon": 24, "channels": 16, "epochs": 4, "batch": 64, "lr": 3e-3}


def hourly_load(days=90, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(days * 24)
    y = 1.0 + 0.5 * np.sin(2 * np.pi * t / 24) + 0.2 * np.sin(2 * np.pi * t / 168)
    y += 0.1 * np.convolve(rng.normal(size=len(t)), np.ones(6) / 6, "same")
    return y.astype(np.float32)


def windows(series, context, horizon, step=2):
    starts = range(0, len(series) - context - horizon, step)
    x = np.stack([series[s:s + context] for s in starts])
    y = np.stack([series[s + context:s + context + horizon] for s in starts])
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class CausalConv(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(cin, cout, 3, dilation=dilation)
        self.skip = nn.Conv1d(cin, cout, 1)

    def forward(self, x):
        return torch.relu(self.conv(nn.functional.pad(x, (self.pad, 0)))) + self.skip(x)


class TCN(nn.Module):
    def __init__(self, channels, horizon):
        super().__init__()
        self.layers = nn.Sequential(*[CausalConv(1 if i == 0 else channels, channels, 2 ** i) for i in range(4)])
        self.out = nn.Linear(channels, horizon)

    def forward(self, x):
        return self.out(self.layers(x.unsqueeze(1))[..., -1])


def switch_mode(model, training):
    if training:
        model.train()
        torch.enable_grad()
    else:
        model.eval()
        torch.no_grad()
    return model


def evaluate(model, loader, device):
    switch_mode(model, training=False)
    total, count = torch.zeros((), device=device), 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        err = (model(x) - y).abs()
        total += err.detach().sum()
        count += y.numel()
    return (total / count).item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    series = hourly_load()
    cut = int(len(series) * 0.75)
    train = DataLoader(windows(series[:cut], HP["context"], HP["horizon"]), HP["batch"], shuffle=True)
    valid = DataLoader(windows(series[cut:], HP["context"], HP["horizon"]), 128)
    model = TCN(HP["channels"], HP["horizon"]).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=HP["lr"])
    LOG.info(json.dumps(HP))
    LOG.info("untrained MAE %.4f", evaluate(model, valid, device))
    for epoch in range(HP["epochs"]):
        switch_mode(model, training=True)
        for x, y in train:
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
        LOG.info("epoch %d MAE %.4f", epoch, evaluate(model, valid, device))


if __name__ == "__main__":
    main()
