from torch import nn


def fresh_net(n_in, width, p):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 1), nn.Flatten(0))
