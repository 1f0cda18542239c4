# Fehlerdiagnose an Windturbinen (simulierte Vibrationssignale)
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

RNG_SEED = 23


class RunLog:
    """Mixin: merkt sich Kennzahlen und kann sie als JSON ablegen."""

    def __init__(self, run_name="run"):
        self.run_name = run_name
        self.history = []

    def note(self, **kw):
        self.history.append(kw)

    def dump(self, folder):
        path = Path(folder) / f"{self.run_name}.json"
        path.write_text(json.dumps(self.history, indent=1))
        return path


class TurbineNet(RunLog, nn.Module):
    def __init__(self, n_channels, n_faults, run_name):
        super().__init__(run_name=run_name)
        self.conv1 = nn.Conv1d(n_channels, 16, kernel_size=7, stride=2)
        self.conv2 = nn.Conv1d(16, 32, kernel_size=5, stride=2)
        self.pool = nn.AdaptiveAvgPool1d(4)
        self.out = nn.Linear(32 * 4, n_faults)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.out(self.pool(x).flatten(1))


def simulate(n, rng):
    """Drei Zustaende: gesund, Unwucht, Lagerschaden."""
    t = np.linspace(0, 1, 128)
    y = rng.integers(0, 3, size=n)
    x = 0.5 * rng.standard_normal((n, 2, t.size))
    for i, k in enumerate(y):
        if k == 1:
            x[i, 0] += np.sin(2 * np.pi * 9 * t + rng.uniform(0, 6))
        elif k == 2:
            x[i, 1] += (rng.random(t.size) > 0.93) * 2.5
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def batches(x, y, size, shuffle):
    order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
    for part in order.split(size):
        yield x[part], y[part]


def evaluate(net, x, y):
    net.eval()
    richtig = 0
    with torch.no_grad():
        for xb, yb in batches(x, y, 128, shuffle=False):
            richtig += int((net(xb).argmax(dim=1) == yb).sum())
    return richtig / len(y)


def run():
    torch.manual_seed(RNG_SEED)
    rng = np.random.default_rng(RNG_SEED)
    x_tr, y_tr = simulate(600, rng)
    x_te, y_te = simulate(200, rng)

    net = TurbineNet(n_channels=2, n_faults=3, run_name="turbine_v2")
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    kriterium = nn.CrossEntropyLoss()

    for epoche in range(5):
        net.train()
        summe = 0.0
        for xb, yb in batches(x_tr, y_tr, 50, shuffle=True):
            sgd.zero_grad()
            verlust = kriterium(net(xb), yb)
            verlust.backward()
            sgd.step()
            summe += verlust.item() * len(xb)
        net.note(epoch=epoche, loss=summe / len(x_tr))
        print(epoche, round(summe / len(x_tr), 4))

    net.note(test_acc=evaluate(net, x_te, y_te))
    with tempfile.TemporaryDirectory() as d:
        print(net.dump(d).read_text())


if __name__ == "__main__":
    run()
