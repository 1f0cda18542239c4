import torch.nn as nn


def mlp(n_in=12, width=64):
    return nn.Sequential(nn.Linear(n_in, width), nn.SiLU(),
                         nn.Sequential(nn.Linear(width, width), nn.SiLU()),
                         nn.Linear(width, 1))
