import numpy as np
import torch
from torch import nn


def synth(n, T, rng):
    """running mean of a noisy signal: the net has to integrate"""
    freq = rng.uniform(0.5, 3.0, size=(n, 1))
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1))
    t = np.linspace(0, 2 * np.pi, T)
    x = np.sin(freq * t + phase) + 0.1 * rng.normal(size=(n, T))
    y = np.cumsum(x, axis=1) / np.arange(1, T + 1)
    return torch.tensor(x, dtype=torch.float32)[..., None], torch.tensor(y, dtype=torch.float32)[..., None]


class Elman(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.cell = nn.RNN(1, hidden, batch_first=True, nonlinearity="tanh")
        self.out = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.cell.weight_hh_l0)

    def forward(self, x):
        h, _ = self.cell(x)
        return self.out(h)


def guard(model, limit):
    # keeps backprop through time from exploding, element by element
    for p in model.parameters():
        p.register_hook(lambda g: torch.clamp(g, -limit, limit))


def mse(model, x, y):
    with torch.no_grad():
        return torch.mean((model(x) - y) ** 2).item()


def run(hidden=32, T=40, lr=0.05, limit=1e-5, epochs=10, bs=32, seed=0):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    xtr, ytr = synth(1024, T, rng)
    xte, yte = synth(256, T, rng)
    model = Elman(hidden)
    guard(model, limit)
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    print(f"start           test mse {mse(model, xte, yte):.5f}")
    for ep in range(epochs):
        perm = rng.permutation(len(xtr))
        acc = []
        for i in range(0, len(perm), bs):
            j = torch.as_tensor(perm[i:i + bs])
            err = torch.mean((model(xtr[j]) - ytr[j]) ** 2)
            opt.zero_grad()
            err.backward()
            opt.step()
            acc.append(err.item())
        print(f"epoch {ep:2d} train {np.mean(acc):.5f} test mse {mse(model, xte, yte):.5f}")
    return model


if __name__ == "__main__":
    run()
