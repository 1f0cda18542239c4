"""Decode movement direction from spike counts.

Port of the group's JAX/stax decoder: networks are put together from small
combinators, `serial` and `parallel` as before.
"""
import functools
import math

import torch
from torch import nn


# ---------------------------------------------------------------- combinators
def dense(n_in, n_out):
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_normal_(layer.weight)
    return lambda x: layer(x)


def norm(n):
    layer = nn.LayerNorm(n)
    return lambda x: layer(x)


def act(fn):
    return lambda x: fn(x)


def serial(*fns):
    return lambda x: functools.reduce(lambda h, f: f(h), fns, x)


def residual(fn):
    return lambda x: x + fn(x)


# ---------------------------------------------------------------- model
class Decoder(nn.Module):
    def __init__(self, n_neurons, n_dirs, width=64):
        super().__init__()
        self.encode = serial(
            dense(n_neurons, width), act(torch.tanh),
            residual(serial(norm(width), dense(width, width), act(torch.tanh))),
            residual(serial(norm(width), dense(width, width), act(torch.tanh))),
        )
        self.readout = nn.Linear(width, n_dirs)

    def forward(self, counts):
        return self.readout(self.encode(torch.sqrt(counts)))


# ---------------------------------------------------------------- data
def spikes(n_trials, n_neurons=40, n_dirs=8, seed=0):
    g = torch.Generator().manual_seed(seed)
    preferred = torch.linspace(0, 2 * math.pi, n_neurons + 1)[:-1]
    y = torch.randint(n_dirs, (n_trials,), generator=g)
    angle = 2 * math.pi * y / n_dirs
    gate = (torch.rand(n_trials, 1, generator=g) < 0.5).float() * math.pi
    rate = torch.exp(0.3 + 0.5 * torch.cos(angle[:, None] - preferred + gate))
    rate[:, ::5] = 1.0 + 2.0 * (gate / math.pi)
    return torch.poisson(rate, generator=g), y


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(-1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    x, y = spikes(3000, seed=1)
    xv, yv = spikes(800, seed=2)
    net = Decoder(x.shape[1], 8)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    n_steps, bs = 400, 64
    for step in range(n_steps):
        i = torch.randint(len(x), (bs,))
        loss = nn.functional.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 80 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}  val acc {accuracy(net, xv, yv):.3f}")
    torch.save(net.state_dict(), "/tmp/decoder.pt")


if __name__ == "__main__":
    main()
