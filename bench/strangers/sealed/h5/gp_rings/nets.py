import torch
from torch import nn


def mlp(*sizes, act=nn.LeakyReLU):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), act(0.2)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def ring(n, gen):
    angle = torch.rand(n, generator=gen) * 2 * torch.pi
    radius = 2.0 + 0.1 * torch.randn(n, generator=gen)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
