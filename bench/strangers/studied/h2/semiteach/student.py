import copy

import torch
from torch import nn


class Student(nn.Module):
    """Classifier that carries an averaged copy of itself.

    The copy sits in a list: it must not show up in parameters() or in the checkpoint.
    """

    def __init__(self, n_in, n_classes, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(width, n_classes),
        )
        self._averaged = [copy.deepcopy(self.net).eval()]
        for p in self._averaged[0].parameters():
            p.requires_grad_(False)

    @property
    def teacher(self):
        return self._averaged[0]

    def forward(self, x):
        return self.net(x)

    @torch.no_grad()
    def update_teacher(self, decay):
        for avg, cur in zip(self.teacher.parameters(), self.net.parameters()):
            avg.mul_(decay).add_(cur, alpha=1 - decay)
