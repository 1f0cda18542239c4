from torch import nn


def generator(z_dim=8, h=64):
    return nn.Sequential(nn.Linear(z_dim, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 2))


def critic(h=64):
    return nn.Sequential(nn.Linear(2, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, 1))
