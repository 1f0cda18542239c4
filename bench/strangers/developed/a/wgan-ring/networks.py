from torch import nn


def mlp(*sizes, act):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


def build(noise=4, width=64):
    generator = mlp(noise, width, width, 2, act=nn.ReLU)
    critic = mlp(2, width, width, 1, act=lambda: nn.LeakyReLU(0.2))
    return generator, critic
