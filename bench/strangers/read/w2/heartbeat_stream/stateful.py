"""Stateful GRU on continuous recordings.

The recordings are cut into parallel streams and read strictly in time order, so the hidden state of one
window is the right start for the next one; between windows the graph is cut.
"""
import torch
from torch import nn

STREAMS, WINDOW = 16, 25


def recording(length, seed):
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(length, generator=g)
    x = torch.zeros(length)
    for t in range(2, length):
        x[t] = 1.6 * x[t - 1] - 0.8 * x[t - 2] + 0.3 * noise[t] + 0.4 * torch.sin(torch.tensor(t / 15.0))
    return x


class Stream:
    def __init__(self, signal, streams, mean, std):
        per = len(signal) // streams
        self.data = ((signal[: per * streams] - mean) / std).view(streams, per, 1)

    def __iter__(self):
        for s in range(0, self.data.size(1) - WINDOW, WINDOW):
            yield self.data[:, s:s + WINDOW], self.data[:, s + 1:s + WINDOW + 1]


class Predictor(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, h=None):
        y, h = self.gru(x, h)
        return self.out(y), h


def one_pass(model, stream, opt=None):
    model.train(opt is not None)
    h, total, count = None, 0.0, 0
    with torch.set_grad_enabled(opt is not None):
        for x, y in stream:
            h = None if h is None else h.detach()
            pred, h = model(x, h)
            loss = nn.functional.mse_loss(pred, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            total += loss.item()
            count += 1
    return total / count


torch.manual_seed(0)
signal = recording(12000, 7)
past, future = signal[:10000], signal[10000:]
mean, std = past.mean(), past.std()
train, val = Stream(past, STREAMS, mean, std), Stream(future, STREAMS, mean, std)
model = Predictor()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    a = one_pass(model, train, opt)
    b = one_pass(model, val)
    print(f"epoch {epoch} train {a:.4f} val {b:.4f}")
