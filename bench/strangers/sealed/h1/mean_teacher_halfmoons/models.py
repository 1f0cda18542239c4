import copy

import torch
from torch import nn


def mlp(dim=2, width=48, classes=2):
    return nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, classes))


class Teacher(nn.Module):
    def __init__(self, student, decay=0.98):
        super().__init__()
        self.net = copy.deepcopy(student).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self, student, step):
        d = min(self.decay, (step + 1) / (step + 10))
        for t, s in zip(self.net.parameters(), student.parameters()):
            t.lerp_(s, 1 - d)

    def forward(self, x):
        return self.net(x)
