from torch import nn


def build(n_in=30):
    return nn.Sequential(nn.Linear(n_in, 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 48), nn.ReLU(), nn.Dropout(0.3),
                         nn.Linear(48, 1))
