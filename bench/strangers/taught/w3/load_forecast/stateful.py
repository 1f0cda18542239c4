"""Hourly load forecasting with a stateful LSTM: streams stay in time order and the state is carried over."""
import math

import torch
from torch import nn

torch.manual_seed(0)
T, STREAMS, CHUNK = 1200, 8, 48


def simulate():
    t = torch.arange(T)
    day, week = 2 * math.pi * t / 24, 2 * math.pi * t / 168
    phase = torch.rand(STREAMS, 1)
    base = 1.5 * torch.sin(day + phase) + 0.6 * torch.sin(week + 2 * phase)
    ar = torch.zeros(STREAMS, T)
    for i in range(1, T):
        ar[:, i] = 0.9 * ar[:, i - 1] + 0.1 * torch.randn(STREAMS)
    return base + ar


series = simulate()
n_train = int(0.8 * T)
mu, sd = series[:, :n_train].mean(), series[:, :n_train].std()
series = (series - mu) / sd
train, test = series[:, :n_train], series[:, n_train - 1:]   # one hour of overlap feeds the first test input


class Forecaster(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.rnn = nn.LSTM(1, h, batch_first=True)
        self.out = nn.Linear(h, 1)

    def forward(self, x, state=None):
        y, state = self.rnn(x.unsqueeze(-1), state)
        return x + self.out(y).squeeze(-1), state


def chunks(s):
    for a in range(0, s.size(1) - 1, CHUNK):
        b = min(a + CHUNK, s.size(1) - 1)
        yield s[:, a:b], s[:, a + 1:b + 1]


net = Forecaster()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(8):
    net.train()
    state, tot, n = None, 0.0, 0
    for x, y in chunks(train):
        pred, state = net(x, state)
        loss = nn.functional.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        state = tuple(s.detach() for s in state)
        tot += loss.item() * y.numel()
        n += y.numel()

    net.eval()
    with torch.no_grad():
        _, warm = net(train[:, :-1])
        se, m, naive = 0.0, 0, 0.0
        for x, y in chunks(test):
            pred, warm = net(x, warm)
            se += (pred - y).pow(2).sum().item()
            naive += (x - y).pow(2).sum().item()
            m += y.numel()
    print(f"epoch {epoch} train mse {tot / n:.4f} test mse {se / m:.4f} (persistence {naive / m:.4f})")
