from torch import nn


def generator(z_dim=8, width=48):
    return nn.Sequential(nn.Linear(z_dim, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 2))


def critic(width=48):
    return nn.Sequential(nn.Linear(2, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
